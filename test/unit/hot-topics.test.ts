import { describe, expect, it } from 'vitest';
import { HotTopics } from '../../node/hot-topics.js';
import { hottest } from '../../node/http-stats.js';

function channel(name: string, messages: number) {
  return { filters: [name], subscribers: 1, messages, sampledMessages: 0, messagesPerSec: 0 };
}

const names = (topics: readonly { readonly filters: readonly string[] }[]) =>
  topics.map(({ filters }) => filters.join(' '));

describe('the hottest topics', () => {
  it('are those with most messages a second, the rest by messages in all; idle ones are left out', () => {
    let now = 0;
    const [a, b, c] = [channel('a', 0), channel('b', 500), channel('c', 2)];
    const hot = new HotTopics(
      () => [a, b, c],
      () => now,
    );
    expect(names(hot.top(9))).toEqual(['b', 'c']);
    now = 2000;
    hot.top(9);
    a.messages += 30;
    c.messages += 10;
    now = 4000;
    expect(hot.top(9).map(({ filters, messagesPerSec }) => [filters[0], messagesPerSec])).toEqual([
      ['a', 15],
      ['c', 5],
      ['b', 0],
    ]);
    expect(names(hot.top(2))).toEqual(['a', 'c']);
  });

  it('keep their rate while they are asked for more often than once a second', () => {
    let now = 0;
    const a = channel('a', 0);
    const hot = new HotTopics(
      () => [a],
      () => now,
    );
    a.messages = 100;
    now = 1000;
    expect(hot.top(1)[0]?.messagesPerSec).toBe(100);
    a.messages = 101;
    now = 1001;
    expect(hot.top(1)[0]).toMatchObject({ messages: 101, messagesPerSec: 100 });
    now = 2000;
    expect(hot.top(1)[0]?.messagesPerSec).toBe(1);
  });

  it('are the best of many', () => {
    const many = Array.from({ length: 200 }, (_, i) => channel(`t${i}`, ((i * 73) % 200) + 1));
    const top = new HotTopics(() => many).top(20);
    expect(top.map(({ messages }) => messages)).toEqual(Array.from({ length: 20 }, (_, i) => 200 - i));
  });

  it('of several nodes count each message once, and all subscribers', () => {
    const topic = (filter: string, messagesPerSec: number, messages: number, subscribers: number) => {
      return { filters: [filter], messagesPerSec, messages, subscribers };
    };
    const all = hottest([
      { topics: [topic('a', 5, 50, 2), topic('b', 9, 9, 1)] },
      { topics: [topic('a', 10, 40, 3)] },
    ]);
    expect(all).toEqual([topic('a', 10, 50, 5), topic('b', 9, 9, 1)]);
  });
});
