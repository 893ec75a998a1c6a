import { beforeEach, describe, expect, it } from 'vitest';
import { createMemoryBus, type MemoryBus, type MemoryBusOptions } from '../../broker/bus-memory.js';
import { deduplicationMs, type BusHandler } from '../../broker/bus.js';
import { createNamespaces, defaultNamespace } from '../../broker/namespaces.js';
import type { Payload } from '../../protocol/payload.js';
import { BusRecorder } from '../support/bus-recorder.js';
import { createTestClock, type TestClock } from '../support/test-clock.js';

const durable = { ...defaultNamespace, delivery: 'durable', historyMax: 100, historySec: 3600 } as const;
const namespaces = createNamespaces({ one: durable, two: { ...durable, historySec: 7200 } });
const kilobyte: Payload = { format: 'json', text: `"${'k'.repeat(1022)}"` };

let clock: TestClock;
let recorder: BusRecorder;

async function startBus(
  more: Partial<MemoryBusOptions> = {},
  handler: BusHandler = recorder,
): Promise<MemoryBus> {
  const bus = createMemoryBus({ namespaces, now: clock.now, ...more });
  await bus.start(handler);
  return bus;
}

function publish(bus: MemoryBus, topic: string, id?: string) {
  const message = { topic, payload: kilobyte, publisher: 'shop' };
  return bus.publish(id === undefined ? message : { ...message, id });
}

describe('memory bus', () => {
  beforeEach(() => {
    clock = createTestClock();
    recorder = new BusRecorder();
  });

  it('delivers before publish settles, and its floor follows', async () => {
    const bus = await startBus();
    await bus.open({ key: 'k', filters: ['one.>'] });
    const publishing = publish(bus, 'one.a');
    expect(recorder.stored('k')).toHaveLength(1);
    expect(bus.floor('one')?.offset).toBe(1);
    expect(bus.floor('live')).toBeUndefined();
    await publishing;
  });

  it('starts each stream anew: another epoch, offsets from 1', async () => {
    const bus = await startBus();
    const before = await publish(bus, 'one.a');
    await bus.stop();
    await bus.start(recorder);
    const after = await publish(bus, 'one.a');
    expect(before?.offset).toBe(1);
    expect(after?.offset).toBe(1);
    expect(after?.epoch).not.toBe(before?.epoch);
    expect(before?.epoch).toMatch(/^[0-9a-z]{8}$/);
  });

  it('bounds the bytes of all streams together, and drops the oldest of any', async () => {
    const storeBytesMax = 20 * 1024;
    const bus = await startBus({ storeBytesMax });
    for (let i = 0; i < 10; i++) {
      await publish(bus, 'one.old');
      clock.advance(1);
    }
    for (let i = 0; i < 50; i++) {
      await publish(bus, 'two.new');
      clock.advance(1);
      expect(bus.sizes().bytes).toBeLessThanOrEqual(storeBytesMax);
    }
    expect(bus.sizes().messages).toBeGreaterThan(10);
    expect((await bus.history(['one.old'], 0, 10)).messages).toEqual([]);
    const kept = await bus.history(['two.new'], 0, 100);
    expect(kept.messages.at(-1)?.offset).toBe(50);
    expect(await bus.recoverable(['two.new'], 1)).toBe(false);
    expect(await bus.recoverable(['two.new'], kept.messages[0]!.offset)).toBe(true);
  });

  it('keeps the newest message even when it alone is over the bound', async () => {
    const bus = await startBus({ storeBytesMax: 10 });
    await publish(bus, 'one.a');
    await publish(bus, 'two.b');
    expect(bus.sizes().messages).toBe(1);
    expect((await bus.history(['two.b'], 0, 10)).messages).toHaveLength(1);
  });

  it('reads on past the places of many dropped messages behind one that is kept', async () => {
    const bus = await startBus();
    await publish(bus, 'one.quiet');
    for (let i = 0; i < 1000; i++) await publish(bus, 'one.busy');
    const all = await bus.history(['one.>'], 0, 1000);
    const kept = [1, ...Array.from({ length: 100 }, (_, i) => 902 + i)];
    expect(all.messages.map(({ offset }) => offset)).toEqual(kept);
    expect(all.messages.map(({ prev }) => prev)).toEqual([0, ...kept.slice(0, -1)]);
    expect(bus.sizes().messages).toBe(101);
  });

  it('bounds the ids that it remembers, and forgets the oldest first', async () => {
    const bus = await startBus({ recentIdsMax: 3 });
    for (const id of ['a', 'b', 'c', 'd']) await publish(bus, 'one.a', id);
    expect(bus.sizes().ids).toBe(3);
    expect((await publish(bus, 'one.a', 'b'))?.duplicate).toBe(true);
    expect((await publish(bus, 'one.a', 'a'))?.duplicate).toBe(false);
  });

  it('holds nothing once all is closed and all has expired', async () => {
    const bus = await startBus();
    for (let i = 0; i < 500; i++) {
      await bus.open({ key: `exact ${i}`, filters: [`one.${i}.x`] });
      await bus.open({ key: `group ${i}`, filters: [`one.${i}.*`, `one.*.x`, `one.${i}.>`] });
      await publish(bus, `one.${i}.x`, `id ${i}`);
      await publish(bus, 'two.busy', `id ${i}`);
    }
    expect(bus.sizes()).toMatchObject({ topics: 501, messages: 600, ids: 1000 });
    for (let i = 0; i < 500; i++) {
      bus.close(`exact ${i}`);
      bus.close(`group ${i}`);
    }
    clock.advance(Math.max(deduplicationMs, 7200 * 1000));
    expect(bus.sizes()).toEqual({ interests: 0, topics: 0, messages: 0, bytes: 0, ids: 0 });
  });

  it('gives every interest one order when a handler publishes in a delivery', async () => {
    const bus = await startBus();
    const results: Promise<unknown>[] = [];
    for (const key of ['a', 'b', 'c']) await bus.open({ key, filters: ['one.>'] });
    recorder.during = (key) => {
      if (key === 'a' && recorder.stored('a').length <= 2) results.push(publish(bus, 'one.nested'));
    };
    await publish(bus, 'one.first');
    await Promise.all(results);
    for (const key of ['a', 'b', 'c']) {
      expect(recorder.stored(key).map(({ offset, prev }) => [prev, offset])).toEqual([
        [0, 1],
        [1, 2],
        [2, 3],
      ]);
    }
  });

  it('lets a handler open and close interests in a delivery', async () => {
    const bus = await startBus();
    const opening: Promise<unknown>[] = [];
    for (const key of ['a', 'b']) await bus.open({ key, filters: ['one.x'] });
    recorder.during = () => {
      bus.close('a');
      bus.close('b');
      if (opening.length === 0) opening.push(bus.open({ key: 'c', filters: ['one.*'] }));
    };
    await publish(bus, 'one.x');
    await Promise.all(opening);
    expect(recorder.stored('a').length + recorder.stored('b').length).toBe(1);
    expect(recorder.stored('c')).toEqual([]);
    await publish(bus, 'one.x');
    expect(recorder.stored('c').map(({ offset, prev }) => [prev, offset])).toEqual([[1, 2]]);
  });

  it('serves all interests when the handler throws for one, and says so', async () => {
    const bus = await startBus();
    for (const key of ['a', 'b']) await bus.open({ key, filters: ['one.x'] });
    recorder.during = (key) => {
      if (key === 'a') throw new Error('a fault');
    };
    await expect(publish(bus, 'one.x')).rejects.toThrow('the handler of the bus threw');
    recorder.during = () => undefined;
    await publish(bus, 'one.x');
    expect(recorder.stored('b')).toHaveLength(2);
  });

  it('refuses what its caller must not do', async () => {
    const bus = await startBus();
    await expect(bus.start(recorder)).rejects.toThrow('started already');
    await expect(bus.open({ key: 'k', filters: [] })).rejects.toThrow('one namespace');
    await expect(bus.open({ key: 'k', filters: ['one.a', 'two.a'] })).rejects.toThrow('one namespace');
    await expect(bus.history(['live.a'], 0, 1)).rejects.toThrow('not durable');
    expect(bus.sizes().interests).toBe(0);
  });
});
