import { expect, test } from 'vitest';
import { formatPosition, isEpoch, isOffset, parsePosition } from '../../protocol/position.js';

test.each([
  ['k3f9:1037', { epoch: 'k3f9', offset: 1037 }],
  ['_-:0', { epoch: '_-', offset: 0 }],
  ['e:9007199254740991', { epoch: 'e', offset: Number.MAX_SAFE_INTEGER }],
])('%j is read and written back', (text, position) => {
  expect(parsePosition(text)).toEqual({ ok: true, value: position });
  expect(formatPosition(position)).toBe(text);
});

test.each([
  '',
  ':',
  'e',
  'e:',
  ':1',
  'e:01',
  'e:-1',
  'e:1.0',
  'e:1e3',
  'e: 1',
  'e:1\n',
  'é:1',
  'e:9007199254740992',
])('%j is no position', (text) => {
  expect(parsePosition(text)).toMatchObject({ ok: false, code: 'invalid_topic' });
});

test('an epoch has 1 to 32 characters', () => {
  expect(isEpoch('e'.repeat(32))).toBe(true);
  expect(['e'.repeat(33), '', 'a:b', 'a.b'].some(isEpoch)).toBe(false);
});

test('an offset is a non-negative safe integer', () => {
  expect([0, 1, Number.MAX_SAFE_INTEGER].every(isOffset)).toBe(true);
  expect([-1, 0.5, NaN, Infinity, 2 ** 53, '1', null, undefined, 1n].some(isOffset)).toBe(false);
});
