import fc from 'fast-check';
import { expect, it } from 'vitest';
import { PatternIndex } from '../../broker/pattern-index.js';
import { matches } from '../../protocol/topic.js';

/** Few tokens, so that filters and topics meet often. */
const token = fc.constantFrom('a', 'b', 'c-1');
const topic = fc.array(token, { minLength: 1, maxLength: 4 }).map((tokens) => tokens.join('.'));
const filter = fc
  .tuple(
    token,
    fc.array(fc.oneof(token, fc.constant('*')), { maxLength: 3 }),
    fc.boolean(), // whether it ends with an arrow
  )
  .map(([first, rest, arrow]) => [first, ...rest, ...(arrow ? ['>'] : [])].join('.'));
const step = fc.record({
  add: fc.boolean(),
  filter: fc.oneof(filter, topic),
  value: fc.integer({ min: 0, max: 3 }),
});

it('finds what a search through all filters finds, whatever was added and removed before', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), fc.array(topic, { maxLength: 8 }), (steps, topics) => {
      const index = new PatternIndex<number>();
      const model = new Map<string, { filter: string; value: number }>();
      for (const { add, filter, value } of steps) {
        const pair = `${filter} ${value}`;
        if (add) {
          index.add(filter, value);
          model.set(pair, { filter, value });
        } else {
          expect(index.remove(filter, value)).toBe(model.delete(pair));
        }
        expect(index.size).toBe(model.size);
      }
      for (const topic of topics) {
        const found: number[] = [];
        index.match(topic, (value) => found.push(value));
        const expected = [...model.values()].filter(({ filter }) => matches(filter, topic));
        expect(found.toSorted()).toEqual(expected.map(({ value }) => value).toSorted());
      }
      for (const { filter, value } of model.values()) index.remove(filter, value);
      expect([index.size, index.branches]).toEqual([0, 0]);
    }),
    { numRuns: 500 },
  );
});
