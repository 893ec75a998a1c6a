import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ChannelMessage } from '../../node/message.js';
import { Ring } from '../../node/ring.js';

const frameBytes = 160;

function message(offset: number, chars = 0): ChannelMessage {
  const payload = { format: 'json', text: 'x'.repeat(chars) } as const;
  return new ChannelMessage({ topic: 'd.a', payload, offset, prev: 0 }, offset - 1, undefined);
}

const offsetsAfter = (ring: Ring, offset: number): number[] => [...ring.after(offset)].map((m) => m.offset);

describe('Ring', () => {
  it('is empty at first', () => {
    const ring = new Ring(3, 10_000);
    expect(ring.size).toBe(0);
    expect(ring.oldest).toBeUndefined();
    expect(offsetsAfter(ring, 0)).toEqual([]);
  });

  it('keeps the newest messages', () => {
    const ring = new Ring(3, 10_000);
    for (const offset of [2, 4, 6, 8, 10]) ring.push(message(offset));
    expect(ring.size).toBe(3);
    expect(ring.oldest?.offset).toBe(6);
    expect(offsetsAfter(ring, 0)).toEqual([6, 8, 10]);
  });

  it('gives what is after an offset, whether it holds that one or not', () => {
    const ring = new Ring(10, 10_000);
    for (const offset of [2, 4, 6]) ring.push(message(offset));
    expect(offsetsAfter(ring, 3)).toEqual([4, 6]);
    expect(offsetsAfter(ring, 4)).toEqual([6]);
    expect(offsetsAfter(ring, 6)).toEqual([]);
  });

  it('is bounded in bytes, and gives up what does not fit alone', () => {
    const ring = new Ring(100, 2 * (frameBytes + 10));
    for (const offset of [1, 2, 3]) ring.push(message(offset, 10));
    expect(offsetsAfter(ring, 0)).toEqual([2, 3]);
    ring.push(message(4, 1000));
    expect(ring.size).toBe(0);
    ring.push(message(5, 10));
    expect(offsetsAfter(ring, 0)).toEqual([5]);
  });

  it('forgets everything when it is cleared, its bytes too', () => {
    const ring = new Ring(100, frameBytes + 10);
    ring.push(message(1, 10));
    ring.clear();
    ring.push(message(2, 10));
    expect(offsetsAfter(ring, 0)).toEqual([2]);
  });

  it('holds what a list cut to the newest does, whatever is pushed', () => {
    const step = fc.record({ skip: fc.integer({ min: 1, max: 4 }), chars: fc.integer({ min: 0, max: 300 }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 9 }), (steps, max) => {
        const bytesMax = 1500;
        const ring = new Ring(max, bytesMax);
        let kept: { readonly offset: number; readonly bytes: number }[] = [];
        let offset = 0;
        for (const { chars, skip } of steps) {
          offset += skip;
          ring.push(message(offset, chars));
          kept = [...kept, { offset, bytes: chars + frameBytes }].slice(-max);
          while (kept.reduce((sum, { bytes }) => sum + bytes, 0) > bytesMax) kept = kept.slice(1);
          expect(offsetsAfter(ring, 0)).toEqual(kept.map((m) => m.offset));
          expect(ring.oldest?.offset).toBe(kept[0]?.offset);
          const middle = offset >> 1;
          expect(offsetsAfter(ring, middle)).toEqual(
            kept.map((m) => m.offset).filter((other) => other > middle),
          );
        }
      }),
    );
  });
});
