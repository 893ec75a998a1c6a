import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Batcher } from '../../node/batcher.js';

const windowMs = 5;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'setImmediate', 'performance'] });
  // A node has run for a while when the first message comes.
  vi.advanceTimersByTime(1000);
});

afterEach(() => {
  vi.useRealTimers();
});

function createItem(log: string[], name: string) {
  return { flush: () => void log.push(name) };
}

describe('Batcher', () => {
  it('lets a lone item go at the end of the turn', () => {
    const log: string[] = [];
    new Batcher(windowMs).add(createItem(log, 'a'));
    expect(log).toEqual([]);
    vi.advanceTimersByTime(0);
    expect(log).toEqual(['a']);
  });

  it('lets all of a turn go together, in order', () => {
    const log: string[] = [];
    const batcher = new Batcher(windowMs);
    for (const name of ['a', 'b', 'c']) batcher.add(createItem(log, name));
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(0);
    expect(log).toEqual(['a', 'b', 'c']);
  });

  it('holds what comes within the window until it is over', () => {
    const log: string[] = [];
    const batcher = new Batcher(windowMs);
    batcher.add(createItem(log, 'a'));
    vi.advanceTimersByTime(0);
    vi.advanceTimersByTime(2);
    batcher.add(createItem(log, 'b'));
    vi.advanceTimersByTime(1);
    batcher.add(createItem(log, 'c'));
    vi.advanceTimersByTime(1);
    expect(log).toEqual(['a']);
    vi.advanceTimersByTime(1);
    expect(log).toEqual(['a', 'b', 'c']);
  });

  it('takes what is added during a flush into the next one', () => {
    const log: string[] = [];
    const batcher = new Batcher(windowMs);
    batcher.add({
      flush: () => {
        log.push('a');
        batcher.add(createItem(log, 'b'));
      },
    });
    vi.advanceTimersByTime(0);
    expect(log).toEqual(['a']);
    vi.advanceTimersByTime(windowMs);
    expect(log).toEqual(['a', 'b']);
  });
});
