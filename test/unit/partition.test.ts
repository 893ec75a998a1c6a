import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { partition } from '../../node/partition.js';
import { matches } from '../../protocol/topic.js';

describe('partition', () => {
  it('gives each exact topic a channel of its own', () => {
    expect(partition(['d.a', 'd.b'])).toEqual([
      { key: 'd.a', filters: ['d.a'], members: ['d.a'] },
      { key: 'd.b', filters: ['d.b'], members: ['d.b'] },
    ]);
  });

  it('lets what a pattern contains ride along with it', () => {
    expect(partition(['d.a', 'd.>', 'd.*.x', 'd'])).toEqual([
      { key: 'd.>', filters: ['d.>'], members: ['d.a', 'd.>', 'd.*.x'] },
      { key: 'd', filters: ['d'], members: ['d'] },
    ]);
  });

  it('joins patterns that overlap, also through a third, in an order that does not depend on the request', () => {
    const chain = ['d.a.*.*', 'd.*.b.*', 'd.*.*.c'];
    for (const order of [chain, [...chain].reverse()]) {
      const [group, ...others] = partition(order);
      expect(others).toEqual([]);
      expect(group?.filters).toEqual([...chain].sort());
      expect(group?.key).toBe([...chain].sort().join('|'));
    }
  });

  it('keeps patterns apart that share no topic', () => {
    expect(partition(['d.a.*', 'd.b.*']).map(({ key }) => key)).toEqual(['d.a.*', 'd.b.*']);
  });

  const token = fc.constantFrom('a', 'b', 'c');
  const topic = fc.array(token, { maxLength: 3 }).map((tokens) => ['d', ...tokens].join('.'));
  const pattern = fc
    .tuple(fc.array(fc.oneof(token, fc.constant('*')), { maxLength: 3 }), fc.boolean())
    .map(([tokens, isOpenEnded]) => ['d', ...tokens, ...(isOpenEnded ? ['>'] : [])].join('.'));
  const filters = fc.uniqueArray(fc.oneof(topic, pattern), { maxLength: 8 });

  it('sends each topic through exactly one group when some filter matches it, and through none otherwise', () => {
    fc.assert(
      fc.property(filters, topic, (held, published) => {
        const through = partition(held).filter((g) => g.filters.some((f) => matches(f, published)));
        const wanted = held.some((filter) => matches(filter, published));
        expect(through).toHaveLength(wanted ? 1 : 0);
        const members = through[0]?.members ?? [];
        for (const filter of held) if (matches(filter, published)) expect(members).toContain(filter);
      }),
      { numRuns: 1000 },
    );
  });

  it('covers every filter in exactly one group', () => {
    fc.assert(
      fc.property(filters, (held) => {
        const groups = partition(held);
        expect(groups.flatMap(({ members }) => members).sort()).toEqual([...held].sort());
        expect(new Set(groups.map(({ key }) => key)).size).toBe(groups.length);
      }),
      { numRuns: 1000 },
    );
  });
});
