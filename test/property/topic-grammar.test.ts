import { describe, expect, test } from 'vitest';
import { contains, intersects, matches, parseFilter, parseGrant, parseTopic } from '../../protocol/topic.js';

/**
 * Every filter and topic over a small alphabet. `z` stands in no filter, so that a wildcard always matches
 * something no concrete token does; topics go one token deeper than filters, so that every tail has room.
 */
const filters = sequences(['a', 'b', '*', '>'], 3).filter((text) => parseGrant(text).ok);
const topics = sequences(['a', 'b', 'z'], 4);
const matched = new Map(
  filters.map((filter) => [filter, topics.filter((topic) => naiveMatch(filter, topic))]),
);

describe('against every topic of a small alphabet', () => {
  test('the alphabet is not empty of interest', () => {
    expect(topics).toHaveLength(3 + 9 + 27 + 81);
    expect(filters).toContain('*.a.>');
    expect(filters.length).toBeGreaterThan(40);
  });

  test('matches', () => {
    for (const filter of filters) {
      expect(
        topics.filter((topic) => matches(filter, topic)),
        filter,
      ).toEqual(matched.get(filter));
    }
  });

  test('contains: every topic of the one is one of the other', () => {
    for (const outer of filters) {
      const wide = new Set(matched.get(outer));
      for (const inner of filters) {
        const expected = (matched.get(inner) ?? []).every((topic) => wide.has(topic));
        expect(contains(outer, inner), `${outer} contains ${inner}`).toBe(expected);
      }
    }
  });

  test('intersects: some topic is one of both', () => {
    for (const left of filters) {
      const mine = new Set(matched.get(left));
      for (const right of filters) {
        const expected = (matched.get(right) ?? []).some((topic) => mine.has(topic));
        expect(intersects(left, right), `${left} intersects ${right}`).toBe(expected);
      }
    }
  });
});

describe('the grammar, over every short text', () => {
  const texts = ['', ...sequences(['a', '.', '*', '>', '@'], 5, '')];

  test.each([
    ['topics', parseTopic, /^a+(\.a+)*$/],
    ['filters', parseFilter, /^a+(\.(a+|\*))*(\.>)?$/],
    ['grants', parseGrant, /^(>|(a+|\*)(\.(a+|\*))*(\.>)?)$/],
  ])('%s', (_name, parse, syntax) => {
    for (const text of texts) expect(parse(text).ok, text).toBe(syntax.test(text));
  });
});

/** All sequences of 1 to `lengthMax` tokens. */
function sequences(tokens: readonly string[], lengthMax: number, separator = '.'): string[] {
  let last = [...tokens];
  const all = [...last];
  for (let length = 2; length <= lengthMax; length++) {
    last = last.flatMap((head) => tokens.map((token) => `${head}${separator}${token}`));
    all.push(...last);
  }
  return all;
}

/** The definition, as a pattern of another kind. */
function naiveMatch(filter: string, topic: string): boolean {
  const pattern = filter.replaceAll('.', '\\.').replaceAll('*', '[^.]+').replace('>', '.+');
  return new RegExp(`^${pattern}$`).test(topic);
}
