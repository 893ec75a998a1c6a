import { describe, expect, it } from 'vitest';
import { Positions } from '../../node/cli/positions.js';
import type { ServerFrame } from '../../protocol/frames.js';

const data = { format: 'json', text: '1' } as const;
type Message = Extract<ServerFrame, { type: 'msg' }>;

function message(topic: string, offset?: number, pattern?: string): Message {
  return {
    type: 'msg',
    topic,
    data,
    ...(offset === undefined ? {} : { offset }),
    ...(pattern === undefined ? {} : { pattern }),
  };
}

function attachedAt(offset: number, ...topics: string[]): Positions {
  const positions = new Positions(topics.map((topic) => ({ topic })));
  for (const topic of topics) positions.subscribed({ topic, epoch: 'e1', offset, recovered: true });
  return positions;
}

describe('positions of a subscriber', () => {
  it('asks for what it was given until the server answered', () => {
    const requests = [
      { topic: 'item.1', epoch: 'e1', offset: 7 },
      { topic: 'news.a' },
      { topic: 'item.2', last: 3 },
    ];
    expect(new Positions(requests).requests()).toEqual(requests);
  });

  it('resumes after the last message and drops what it had', () => {
    const positions = attachedAt(10, 'item.1');
    expect([11, 15, 15, 12, 16].map((offset) => positions.accept(message('item.1', offset)))).toEqual([
      true,
      true,
      false,
      false,
      true,
    ]);
    expect(positions.requests()).toEqual([{ topic: 'item.1', epoch: 'e1', offset: 16 }]);
  });

  it('never drops messages of live topics and asks for them without a position', () => {
    const positions = new Positions([{ topic: 'news.a' }]);
    positions.subscribed({ topic: 'news.a' });
    expect(positions.accept(message('news.a'))).toBe(true);
    expect(positions.accept(message('news.a'))).toBe(true);
    expect(positions.requests()).toEqual([{ topic: 'news.a' }]);
  });

  it('advances the pattern that a message came for, and its topic when that is held too', () => {
    const positions = attachedAt(10, 'item.*', 'item.1', 'item.2');
    positions.accept(message('item.1', 20, 'item.*'));
    expect(positions.requests().map(({ topic, offset }) => [topic, offset])).toEqual([
      ['item.*', 20],
      ['item.1', 20],
      ['item.2', 10],
    ]);
  });

  it('leaves a pattern where it is when a message came for the topic alone', () => {
    const positions = attachedAt(10, 'item.*', 'item.1');
    positions.accept(message('item.1', 20));
    expect(positions.requests().map(({ topic, offset }) => [topic, offset])).toEqual([
      ['item.*', 10],
      ['item.1', 20],
    ]);
  });

  it('takes a replay for a pattern though the topic itself began later', () => {
    const positions = new Positions([{ topic: 'item.1' }, { topic: 'item.*', epoch: 'e1', offset: 5 }]);
    positions.subscribed({ topic: 'item.1', epoch: 'e1', offset: 100, recovered: true });
    positions.subscribed({ topic: 'item.*', epoch: 'e1', offset: 5, recovered: true });
    expect(positions.accept(message('item.1', 60, 'item.*'))).toBe(true);
  });

  it('takes a replay for a topic that is served by a pattern which began later', () => {
    const positions = new Positions([{ topic: 'item.1', epoch: 'e1', offset: 5 }, { topic: 'item.*' }]);
    positions.subscribed({ topic: 'item.1', epoch: 'e1', offset: 5, recovered: true });
    positions.subscribed({ topic: 'item.*', epoch: 'e1', offset: 100, recovered: true });
    expect(positions.accept(message('item.1', 60, 'item.*'))).toBe(true);
    expect(positions.requests().map(({ offset }) => offset)).toEqual([60, 100]);
    expect(positions.accept(message('item.2', 60, 'item.*'))).toBe(false);
  });

  it('drops a message that another overlapping pattern brought already', () => {
    const positions = attachedAt(10, 'item.*.x', 'item.a.*');
    expect(positions.accept(message('item.a.x', 11, 'item.*.x'))).toBe(true);
    expect(positions.accept(message('item.a.x', 11, 'item.a.*'))).toBe(false);
    expect(positions.requests().map(({ offset }) => offset)).toEqual([11, 11]);
  });

  it('resumes at the floor of its namespace when that is further on, in the same epoch', () => {
    const positions = attachedAt(10, 'item.1', 'coupon.a');
    positions.floors({ item: 'e1:30', coupon: 'e0:30' });
    expect(positions.requests().map(({ offset }) => offset)).toEqual([30, 10]);
    positions.accept(message('item.1', 40));
    positions.floors({ item: 'e1:35' });
    expect(positions.requests()[0]?.offset).toBe(40);
  });

  it('does not take a floor for messages: what comes below it is still new', () => {
    const positions = attachedAt(10, 'item.1');
    positions.floors({ item: 'e1:30' });
    expect(positions.accept(message('item.1', 20))).toBe(true);
  });

  it('ignores floors while a topic waits for its answer', () => {
    const positions = attachedAt(10, 'item.1', 'item.2');
    expect(positions.resync(['item.1'])).toEqual([{ topic: 'item.1', epoch: 'e1', offset: 10 }]);
    positions.floors({ item: 'e1:30' });
    expect(positions.requests().map(({ offset }) => offset)).toEqual([10, 30]);
    positions.detach();
    positions.floors({ item: 'e1:50' });
    expect(positions.requests().map(({ offset }) => offset)).toEqual([10, 30]);
  });

  it('steps over a gap', () => {
    const positions = attachedAt(10, 'item.1');
    positions.gap('item.1', 18);
    expect(positions.requests()[0]?.offset).toBe(18);
    expect(positions.accept(message('item.1', 19))).toBe(true);
  });

  it('begins anew in a new epoch, whose offsets may be lower', () => {
    const positions = attachedAt(10, 'item.1');
    positions.accept(message('item.1', 50));
    positions.floors({ item: 'e1:60' });
    expect(positions.subscribed({ topic: 'item.1', epoch: 'e2', offset: 3, recovered: false })).toBe(
      'not-recovered',
    );
    expect(positions.requests()).toEqual([{ topic: 'item.1', epoch: 'e2', offset: 3 }]);
    expect(positions.accept(message('item.1', 4))).toBe(true);
  });

  it('calls a first subscription attached, recovered or not', () => {
    const positions = new Positions([{ topic: 'item.1' }]);
    expect(positions.subscribed({ topic: 'item.1', epoch: 'e1', offset: 3, recovered: false })).toBe(
      'attached',
    );
  });

  it('forgets refused topics, keeps those that are out of reach, takes up those of the token', () => {
    const positions = new Positions([{ topic: 'item.1' }, { topic: 'item.2' }]);
    expect(positions.subscribed({ topic: 'item.1', error: 'forbidden' })).toBe('refused');
    positions.subscribed({ topic: 'item.2', error: 'unavailable' });
    positions.subscribed({ topic: 'coupon.mine', epoch: 'e1', offset: 2, recovered: true });
    expect(positions.requests()).toEqual([
      { topic: 'item.2' },
      { topic: 'coupon.mine', epoch: 'e1', offset: 2 },
    ]);
  });
});
