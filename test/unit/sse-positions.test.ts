import { describe, expect, it } from 'vitest';
import { resumed } from '../../node/sse.js';
import { eventIdBytesMax, parseEventId, StreamPositions } from '../../node/sse-positions.js';

function started(): StreamPositions {
  const positions = new StreamPositions();
  positions.apply({
    type: 'subscribed',
    topics: [
      { topic: 'item.1', epoch: 'e1', offset: 5, recovered: true },
      { topic: 'item.>', epoch: 'e1', offset: 3, recovered: true },
      { topic: 'coupon.7', epoch: 'c', offset: 0, recovered: false },
      { topic: 'price.1' },
      { topic: 'item..', error: 'invalid_topic' },
    ],
  });
  return positions;
}

describe('positions of a stream', () => {
  it('name every durable topic, and no other', () => {
    expect(started().id).toBe('item.1@e1:5,item.>@e1:3,coupon.7@c:0');
  });

  it('advance for a message wherever it was asked for, and never go back', () => {
    const positions = started();
    positions.advance('item.1', 9);
    positions.advance('item.2', 8);
    expect(positions.id).toBe('item.1@e1:9,item.>@e1:9,coupon.7@c:0');
    positions.advance('item.2', 12);
    positions.advance('price.1', 0);
    expect(positions.id).toBe('item.1@e1:9,item.>@e1:12,coupon.7@c:0');
  });

  it('step over a gap, start over with an epoch, and go with the subscription', () => {
    const positions = started();
    positions.apply({ type: 'gap', topic: 'item.1', from: 6, to: 20 });
    expect(positions.id).toContain('item.1@e1:20');
    const restart = { topic: 'item.1', epoch: 'e2', offset: 1, recovered: false };
    positions.apply({ type: 'subscribed', topics: [restart] });
    expect(positions.id).toContain('item.1@e2:1');
    positions.apply({ type: 'unsubscribed', topics: ['item.1', 'item.>'] });
    positions.advance('item.1', 30);
    expect(positions.id).toBe('coupon.7@c:0');
  });

  it('say whether a frame changed them', () => {
    const positions = started();
    expect(positions.apply({ type: 'bye', code: 4000, reason: 'draining' })).toBe(false);
    expect(positions.apply({ type: 'gap', topic: 'item.1', from: 6, to: 7 })).toBe(true);
  });

  it('never outgrow the header that brings them back', () => {
    const positions = new StreamPositions();
    const topics = Array.from({ length: 400 }, (_, i) => {
      return { topic: `item.${'x'.repeat(30)}${i}`, epoch: 'e1', offset: 1, recovered: true };
    });
    positions.apply({ type: 'subscribed', topics });
    for (const { topic } of topics) positions.advance(topic, Number.MAX_SAFE_INTEGER);
    expect(positions.id.length).toBeGreaterThan(eventIdBytesMax / 2);
    expect(positions.id.length).toBeLessThanOrEqual(eventIdBytesMax);
  });

  it('come back as they were written', () => {
    const parsed = parseEventId(started().id);
    expect(parsed.ok && [...parsed.value]).toEqual([
      ['item.1', { epoch: 'e1', offset: 5 }],
      ['item.>', { epoch: 'e1', offset: 3 }],
      ['coupon.7', { epoch: 'c', offset: 0 }],
    ]);
    expect(parseEventId('')).toEqual({ ok: true, value: new Map() });
  });

  it.each(['item.1', 'item.1@e1', 'item.1@e1:x', 'item.1@e1:5,,', '>@e:1', '*', '%', 'x'.repeat(9000)])(
    'are refused when they are malformed: %.40s',
    (text) => expect(parseEventId(text).ok).toBe(false),
  );

  it('count only for topics that are asked for, over the position of the address', () => {
    const positions = new Map([
      ['item.1', { epoch: 'e', offset: 9 }],
      ['item.7', { epoch: 'e', offset: 9 }],
    ]);
    expect(resumed([{ topic: 'item.1', epoch: 'e', offset: 2 }, { topic: 'item.2' }], positions)).toEqual([
      { topic: 'item.1', epoch: 'e', offset: 9 },
      { topic: 'item.2' },
    ]);
  });
});
