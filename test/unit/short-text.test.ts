import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { shortText, shortTextDigits } from '../../node/short-text.js';

describe('shortText', () => {
  it('counts through digits and letters of both cases', () => {
    expect([0, 9, 10, 35, 36, 61, 62, 200_000].map((value) => shortText(value))).toEqual([
      '0',
      '9',
      'A',
      'Z',
      'a',
      'z',
      '10',
      'q1o',
    ]);
  });

  it('fills up with zeros, and cuts nothing', () => {
    expect(shortText(0, 5)).toBe('00000');
    expect(shortText(61, 2)).toBe('0z');
    expect(shortText(shortTextDigits ** 5 - 1, 5)).toBe('zzzzz');
    expect(shortText(shortTextDigits ** 5, 5)).toBe('100000');
  });

  it('gives each number a text of its own, fit for an id', () => {
    const whole = fc.nat({ max: Number.MAX_SAFE_INTEGER });
    fc.assert(
      fc.property(whole, whole, (a, b) => {
        expect(shortText(a)).toMatch(/^[0-9A-Za-z]{1,9}$/);
        expect(shortText(a) === shortText(b)).toBe(a === b);
      }),
    );
  });
});
