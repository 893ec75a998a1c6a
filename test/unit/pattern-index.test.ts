import { describe, expect, it } from 'vitest';
import { PatternIndex } from '../../broker/pattern-index.js';

function matched(index: PatternIndex<string>, topic: string): string[] {
  const values: string[] = [];
  index.match(topic, (value) => values.push(value));
  return values.toSorted();
}

function indexOf(...filters: string[]): PatternIndex<string> {
  const index = new PatternIndex<string>();
  for (const filter of filters) index.add(filter, filter);
  return index;
}

describe('PatternIndex', () => {
  it('finds exact topics, and no longer or shorter ones', () => {
    const index = indexOf('a.b', 'a', 'a.b.c');
    expect(matched(index, 'a.b')).toEqual(['a.b']);
    expect(matched(index, 'a.b.c.d')).toEqual([]);
    expect(matched(index, 'b')).toEqual([]);
  });

  it('takes a star for one token and an arrow for one or more', () => {
    const index = indexOf('a.*', 'a.>', 'a.*.c', 'a.b.>', 'a.*.>', '>', '*');
    expect(matched(index, 'a')).toEqual(['*', '>']);
    expect(matched(index, 'a.b')).toEqual(['>', 'a.*', 'a.>']);
    expect(matched(index, 'a.b.c')).toEqual(['>', 'a.*.>', 'a.*.c', 'a.>', 'a.b.>']);
    expect(matched(index, 'a.b.c.d')).toEqual(['>', 'a.*.>', 'a.>', 'a.b.>']);
  });

  it('visits a value once for each of its filters that matches', () => {
    const index = new PatternIndex<string>();
    for (const filter of ['a.b', 'a.*', 'a.>', 'x.>']) index.add(filter, 'v');
    expect(matched(index, 'a.b')).toEqual(['v', 'v', 'v']);
  });

  it('holds a pair once, and several values of one filter', () => {
    const index = new PatternIndex<string>();
    for (const filter of ['a.b', 'a.*']) {
      index.add(filter, 'v');
      index.add(filter, 'v');
      index.add(filter, 'w');
    }
    expect(index.size).toBe(4);
    expect(matched(index, 'a.b')).toEqual(['v', 'v', 'w', 'w']);
  });

  it('removes only what is there, and leaves neighbours', () => {
    const index = indexOf('a.*', 'a.*.c', 'a.b', 'a.b.>');
    expect(index.remove('a.*', 'other')).toBe(false);
    expect(index.remove('a.x.*', 'a.*')).toBe(false);
    expect(index.remove('a.x', 'a.b')).toBe(false);
    expect(index.remove('a.*', 'a.*')).toBe(true);
    expect(index.remove('a.*', 'a.*')).toBe(false);
    expect(index.remove('a.b', 'a.b')).toBe(true);
    expect(index.size).toBe(2);
    expect(matched(index, 'a.b')).toEqual([]);
    expect(matched(index, 'a.b.c')).toEqual(['a.*.c', 'a.b.>']);
  });

  it('keeps no branch of what was removed', () => {
    const filters = ['a.b.c', 'a.*.c', 'a.*.c.d.>', 'a.>', 'b.*'];
    const index = indexOf(...filters);
    expect(index.branches).toBeGreaterThan(0);
    for (const filter of filters) index.remove(filter, filter);
    expect(index.size).toBe(0);
    expect(index.branches).toBe(0);
  });
});
