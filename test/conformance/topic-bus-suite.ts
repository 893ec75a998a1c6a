import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  deduplicationMs,
  historyPageBytesMax,
  historyPageMessagesMax,
  type LiveMessage,
  type OutgoingMessage,
  type Published,
  type StoredMessage,
  type TopicBus,
} from '../../broker/bus.js';
import { createNamespaces, defaultNamespace, type Namespaces } from '../../broker/namespaces.js';
import type { Payload } from '../../protocol/payload.js';
import { isEpoch, type Position } from '../../protocol/position.js';
import { BusRecorder } from '../support/bus-recorder.js';
import { eventually } from '../support/signal.js';

/** An engine under test. */
export interface TopicBusEngine {
  /** Makes buses of one cluster that nobody else uses, none started. */
  make(namespaces: Namespaces): Promise<TopicBusFixture>;
  /**
   * The clock that its buses go by, if a test can set it. Without one, ageing is waited for in real time, and the end of
   * the two minutes of de-duplication is not a case of the suite.
   */
  readonly clock?: { advance(ms: number): void };
}

export interface TopicBusFixture {
  /** At least one: the first listens and the last publishes. */
  readonly nodes: readonly TopicBus[];
  /** Stops what the suite has not stopped. */
  dispose(): Promise<void>;
}

const durable = { ...defaultNamespace, delivery: 'durable', historyMax: 2000, historySec: 3600 } as const;
const historyMax = 5;
const historySec = 2;
const namespaces = createNamespaces({
  'cf-live': defaultNamespace,
  'cf-store': durable,
  'cf-other': durable,
  'cf-count': { ...durable, historyMax },
  'cf-age': { ...durable, historySec },
});

const run = Date.now().toString(36);
let named = 0;
const unique = (): string => `${run}-${++named}`;

function json(value: unknown): Payload {
  return { format: 'json', text: JSON.stringify(value) };
}

function texts(messages: readonly LiveMessage[]): string[] {
  return messages.map(({ payload }) => (payload.format === 'json' ? payload.text : 'bytes'));
}

function offsets(messages: readonly Pick<StoredMessage, 'offset'>[]): number[] {
  return messages.map(({ offset }) => offset);
}

/** Each message names the one before it, and the first names nothing that the receiver would miss. */
function expectChain(messages: readonly StoredMessage[], after: number): void {
  for (const [i, { offset, prev }] of messages.entries()) {
    expect(offset).toBeGreaterThan(prev);
    const before = messages[i - 1];
    if (before !== undefined) expect(prev).toBe(before.offset);
    else expect(prev).toBeLessThanOrEqual(after);
  }
}

/** What every topic bus does, whatever it runs on. */
export function topicBusConformance(name: string, engine: TopicBusEngine): void {
  describe(`topic bus: ${name}`, () => {
    const recorder = new BusRecorder();
    let fixture: TopicBusFixture;
    let bus: TopicBus;
    let publisher: TopicBus;

    beforeAll(async () => {
      fixture = await engine.make(namespaces);
      bus = fixture.nodes[0]!;
      publisher = fixture.nodes.at(-1)!;
      await bus.start(recorder);
      for (const other of fixture.nodes.slice(1)) await other.start(new BusRecorder());
    });

    afterAll(() => fixture.dispose());

    async function listen(...filters: string[]): Promise<{ key: string; head: Position | undefined }> {
      const key = unique();
      return { key, head: await bus.open({ key, filters }) };
    }

    async function listenStored(...filters: string[]): Promise<{ key: string; head: Position }> {
      const { key, head } = await listen(...filters);
      if (head === undefined) throw new Error(`${filters.join(' ')} has no head`);
      return { key, head };
    }

    function send(topic: string, value: unknown, more: Partial<OutgoingMessage> = {}) {
      return publisher.publish({ topic, payload: json(value), publisher: 'shop', ...more });
    }

    async function store(
      topic: string,
      value: unknown,
      more: Partial<OutgoingMessage> = {},
    ): Promise<Published> {
      const published = await send(topic, value, more);
      if (published === undefined) throw new Error(`${topic} was not stored`);
      return published;
    }

    async function storeMany(topic: string, count: number): Promise<Published[]> {
      const published: Published[] = [];
      for (let i = 1; i <= count; i++) published.push(await store(topic, i));
      return published;
    }

    async function stored(key: string, count: number): Promise<StoredMessage[]> {
      await recorder.signal.until(
        `${count} stored messages for ${key}`,
        () => recorder.stored(key).length >= count,
      );
      return recorder.stored(key);
    }

    async function live(key: string, count: number): Promise<LiveMessage[]> {
      await recorder.signal.until(
        `${count} live messages for ${key}`,
        () => recorder.live(key).length >= count,
      );
      return recorder.live(key);
    }

    describe('live topics', () => {
      it('come in the order of the publisher, to topic and pattern, and have no place', async () => {
        const topic = `cf-live.${unique()}`;
        const exact = await listen(topic);
        const pattern = await listen(`${topic}.>`);
        expect(exact.head).toBeUndefined();
        for (let i = 0; i < 50; i++) expect(await send(topic, i)).toBeUndefined();
        for (let i = 0; i < 50; i++) expect(await send(`${topic}.a.b`, i)).toBeUndefined();
        const expected = Array.from({ length: 50 }, (_, i) => String(i));
        expect(texts(await live(exact.key, 50))).toEqual(expected);
        const below = await live(pattern.key, 50);
        expect(texts(below)).toEqual(expected);
        expect(new Set(below.map((message) => message.topic))).toEqual(new Set([`${topic}.a.b`]));
        expect(recorder.live(exact.key)).toHaveLength(50);
      });

      it('come once to each interest that matches, and once to a group whose patterns overlap', async () => {
        const topic = `cf-live.${unique()}`;
        const keys = [];
        for (const filters of [[`${topic}.a`], [`${topic}.*`], [`${topic}.*`, `${topic}.>`, `${topic}.a`]]) {
          keys.push((await listen(...filters)).key);
        }
        await send(`${topic}.a`, 'first');
        await send(`${topic}.a`, 'last');
        for (const key of keys) {
          await recorder.signal.until('the last one', () => texts(recorder.live(key)).includes('"last"'));
          expect(texts(recorder.live(key))).toEqual(['"first"', '"last"']);
        }
      });

      it('keep one id apart from another publish of it: nothing is de-duplicated that is not stored', async () => {
        const topic = `cf-live.${unique()}`;
        expect(await send(topic, 'nobody listens', { id: 'a' })).toBeUndefined();
        expect(bus.floor('cf-live')).toBeUndefined();
      });

      it('end with close', async () => {
        const topic = `cf-live.${unique()}`;
        const closed = await listen(topic);
        const open = await listen(topic);
        bus.close(closed.key);
        await send(topic, 1);
        await live(open.key, 1);
        expect(recorder.live(closed.key)).toEqual([]);
      });
    });

    describe('durable topics', () => {
      it('are delivered as stored: in order, each naming the one before', async () => {
        const topic = `cf-store.${unique()}`;
        const { key, head } = await listenStored(topic);
        const published = await storeMany(topic, 30);
        const got = await stored(key, 30);
        expect(offsets(got)).toEqual(offsets(published));
        expect(texts(got)).toEqual(published.map((_, i) => String(i + 1)));
        expect(got.every((message) => message.topic === topic)).toBe(true);
        expect(got[0]?.prev).toBe(0);
        expect(got[0]?.offset).toBeGreaterThan(head.offset);
        expectChain(got, head.offset);
        expect(published.every(({ duplicate }) => !duplicate)).toBe(true);
      });

      it('name the message before also when others of the namespace come between, and to a late listener', async () => {
        const topic = `cf-store.${unique()}`;
        const first = await store(topic, 1);
        await storeMany(`${topic}-between`, 3);
        const { key, head } = await listenStored(topic);
        expect(head.offset).toBeGreaterThan(first.offset);
        await store(topic, 2);
        await storeMany(`${topic}-between`, 3);
        await store(topic, 3);
        const got = await stored(key, 2);
        expect(texts(got)).toEqual(['2', '3']);
        expect(got[0]?.prev).toBe(first.offset);
        expectChain(got, head.offset);
      });

      it('get increasing offsets when many publish at once', async () => {
        const topic = `cf-store.${unique()}`;
        const { key, head } = await listenStored(topic);
        const published = await Promise.all(Array.from({ length: 100 }, (_, i) => store(topic, i)));
        const got = await stored(key, 100);
        expect(offsets(got)).toEqual(offsets(published).toSorted((a, b) => a - b));
        expect(new Set(offsets(got)).size).toBe(100);
        for (const [i, { offset }] of published.entries()) {
          expect(texts(got.filter((message) => message.offset === offset))).toEqual([String(i)]);
        }
        expectChain(got, head.offset);
      });

      it('come once to topic, pattern and group, each with its own chain', async () => {
        const topic = `cf-store.${unique()}`;
        const exact = await listenStored(`${topic}.a.x`);
        const pattern = await listenStored(`${topic}.*.x`);
        const group = await listenStored(`${topic}.*.x`, `${topic}.a.>`);
        const ax = [await store(`${topic}.a.x`, 'ax')];
        await store(`${topic}.a.y`, 'ay');
        await store(`${topic}.b.x`, 'bx');
        await store(`${topic}.b.y`, 'by');
        ax.push(await store(`${topic}.a.x`, 'last'));
        const inExact = await stored(exact.key, 2);
        const inPattern = await stored(pattern.key, 3);
        const inGroup = await stored(group.key, 4);
        expect(texts(inExact)).toEqual(['"ax"', '"last"']);
        expect(texts(inPattern)).toEqual(['"ax"', '"bx"', '"last"']);
        expect(texts(inGroup)).toEqual(['"ax"', '"ay"', '"bx"', '"last"']);
        expect(offsets(inExact)).toEqual(offsets(ax));
        expectChain(inExact, exact.head.offset);
        expectChain(inPattern, pattern.head.offset);
        expectChain(inGroup, group.head.offset);
        expect(inPattern[2]?.prev).toBe(inPattern[1]?.offset);
      });

      it('do not reach an interest of another namespace, nor one topic another', async () => {
        const token = unique();
        const listeners = [
          await listenStored(`cf-store.${token}.>`),
          await listenStored(`cf-store.${token}.b`),
        ];
        await store(`cf-other.${token}.b`, 'foreign');
        await store(`cf-store.${token}-more.b`, 'foreign');
        await store(`cf-store.${token}.b`, 'own');
        for (const { key } of listeners) expect(texts(await stored(key, 1))).toEqual(['"own"']);
        expect(texts((await bus.history([`cf-store.${token}.>`], 0, 10)).messages)).toEqual(['"own"']);
      });

      it('keep payloads of both formats, and of 256 KiB, byte for byte', async () => {
        const topic = `cf-store.${unique()}`;
        const { key } = await listenStored(topic);
        const payloads: Payload[] = [
          { format: 'json', text: '{"n":9007199254740993, "f":1.0,"s":"ü€😀"}' },
          { format: 'msgpack', bytes: Uint8Array.of(0xc4, 3, 0, 255, 10) },
          { format: 'json', text: `"${'x'.repeat(256 * 1024 - 2)}"` },
        ];
        for (const payload of payloads) await store(topic, undefined, { payload });
        const received = (await stored(key, 3)).map(({ payload }) => payload);
        const read = (await bus.history([topic], 0, 10)).messages.map(({ payload }) => payload);
        for (const copies of [received, read]) {
          expect(copies.map(plain)).toEqual(payloads.map(plain));
        }
      });

      it('follow many interests as they come and go', async () => {
        const topics = Array.from({ length: 1000 }, (_, i) => `cf-store.${unique()}.t${i}`);
        const interests = await Promise.all(topics.map((topic) => listenStored(topic)));
        const told = topics.filter((_, i) => i % 50 === 0);
        for (const topic of told) await store(topic, topic);
        const keys = interests.filter((_, i) => i % 50 === 0).map(({ key }) => key);
        for (const [i, key] of keys.entries()) {
          expect((await stored(key, 1)).map(({ topic }) => topic)).toEqual([told[i]]);
        }
        for (const { key } of interests) bus.close(key);
        const open = await listenStored(told.at(-1)!);
        for (const topic of told) await store(topic, 'after');
        await stored(open.key, 1);
        for (const { key } of interests) {
          expect(recorder.stored(key)).toHaveLength(keys.includes(key) ? 1 : 0);
        }
      });
    });

    describe('interests', () => {
      it('start at the head of the stream, in its epoch', async () => {
        const topic = `cf-store.${unique()}`;
        const before = await store(topic, 1);
        const head = await bus.head(['cf-store.x']);
        expect(head).toMatchObject({ epoch: before.epoch, offset: before.offset });
        expect(isEpoch(head.epoch)).toBe(true);
        const { epoch, offset } = head;
        const newest = [
          { filters: [topic], newest: before.offset },
          { filters: [`${topic}-silent`], newest: 0 },
          { filters: ['cf-store.>'], newest: before.offset },
          { filters: [`${topic}.*`, `${topic}.>`], newest: 0 },
        ];
        for (const { filters, newest: expected } of newest) {
          const opened = await listenStored(...filters);
          expect(opened.head).toEqual({ epoch, offset, newest: expected });
        }
        const floor = bus.floor('cf-store');
        if (floor !== undefined) {
          expect(floor.epoch).toBe(head.epoch);
          expect(floor.offset).toBeLessThanOrEqual(head.offset);
        }
      });

      it('get everything after their head, and nothing up to it', async () => {
        const topic = `cf-store.${unique()}`;
        await store(topic, 'before');
        const { key, head } = await listenStored(topic);
        const after = await store(topic, 'after');
        expect(offsets(await stored(key, 1))).toEqual([after.offset]);
        expect(after.offset).toBeGreaterThan(head.offset);
      });

      it('cannot be opened twice under one key, and again once closed', async () => {
        const topic = `cf-store.${unique()}`;
        const { key } = await listenStored(topic);
        await expect(bus.open({ key, filters: [topic] })).rejects.toThrow();
        bus.close(key);
        bus.close(key);
        bus.close('nobody');
        await bus.open({ key, filters: [topic] });
        const { offset } = await store(topic, 1);
        expect(offsets(await stored(key, 1))).toEqual([offset]);
      });

      it('end in the very delivery that closes them', async () => {
        const topic = `cf-store.${unique()}`;
        const closed = await listenStored(topic);
        const open = await listenStored(topic);
        recorder.during = (key) => {
          if (key === closed.key) bus.close(key);
        };
        await storeMany(topic, 3);
        await stored(open.key, 3);
        await stored(closed.key, 1);
        recorder.during = () => undefined;
        expect(recorder.stored(closed.key)).toHaveLength(1);
      });
    });

    describe('history', () => {
      it('pages through a topic and ends at the head', async () => {
        const topic = `cf-store.${unique()}`;
        const published = await storeMany(topic, 25);
        await store(`${topic}-other`, 1);
        const { offset: end, epoch } = await bus.head(['cf-store.x']);
        const read: StoredMessage[] = [];
        let after = 0;
        for (const [count, more] of [
          [10, true],
          [10, true],
          [5, false],
        ] as const) {
          const page = await bus.history([topic], after, 10);
          expect(page.messages).toHaveLength(count);
          expect(page).toMatchObject({ more, epoch, complete: true });
          expectChain(page.messages, after);
          read.push(...page.messages);
          after = page.messages.at(-1)!.offset;
          if (!more) expect(page.upTo).toBe(end);
          expect(page.upTo).toBeGreaterThanOrEqual(after);
          const next = published[read.length];
          if (next !== undefined) expect(page.upTo).toBeLessThan(next.offset);
        }
        expect(offsets(read)).toEqual(offsets(published));
        expect(texts(read)).toEqual(published.map((_, i) => String(i + 1)));
        const empty = await bus.history([topic], after, 10);
        expect(empty).toMatchObject({ messages: [], more: false, complete: true, upTo: end });
      });

      it('reads patterns and groups in stream order, each message once', async () => {
        const topic = `cf-store.${unique()}`;
        const published: Published[] = [];
        for (let i = 0; i < 12; i++) {
          published.push(await store(`${topic}.${i % 3}.x`, i));
          await store(`${topic}-other.x`, i);
        }
        for (const filters of [[`${topic}.>`], [`${topic}.*.x`, `${topic}.0.>`, `${topic}.>`]]) {
          const first = await bus.history(filters, 0, 7);
          expect(offsets(first.messages)).toEqual(offsets(published.slice(0, 7)));
          expect(first.more).toBe(true);
          const after = published[6]!.offset;
          const second = await bus.history(filters, after, 7);
          expect(offsets(second.messages)).toEqual(offsets(published.slice(7)));
          expect(second.more).toBe(false);
          expectChain(first.messages, 0);
          expectChain(second.messages, after);
        }
        const some = await bus.history([`${topic}.1.*`, `${topic}.2.*`], 0, 100);
        expect(texts(some.messages)).toEqual(['1', '2', '4', '5', '7', '8', '10', '11']);
        expectChain(some.messages, 0);
      });

      it('does not claim more when the rest of the stream is of others', async () => {
        const topic = `cf-store.${unique()}`;
        await storeMany(`${topic}.a`, 2);
        await storeMany(`${topic}-other`, 3);
        expect((await bus.history([`${topic}.>`], 0, 2)).more).toBe(false);
        expect((await bus.history([`${topic}.a`], 0, 2)).more).toBe(false);
      });

      it('ends a page by bytes, and a page holds at least one message', async () => {
        const topic = `cf-store.${unique()}`;
        const size = 256 * 1024;
        const payload: Payload = { format: 'json', text: `"${'y'.repeat(size - 2)}"` };
        const published: Published[] = [];
        for (let i = 0; i < 7; i++) published.push(await store(topic, undefined, { payload }));
        const read: StoredMessage[] = [];
        for (let more = true; more;) {
          const page = await bus.history([topic], read.at(-1)?.offset ?? 0, 1000);
          expect(page.messages.length).toBeGreaterThan(0);
          expect(page.messages.length * size).toBeLessThanOrEqual(historyPageBytesMax + size);
          read.push(...page.messages);
          more = page.more;
        }
        expect(offsets(read)).toEqual(offsets(published));
      });

      it('holds no more messages in a page than its bound, whatever was asked', async () => {
        const topic = `cf-store.${unique()}`;
        const count = historyPageMessagesMax + 3;
        await Promise.all(Array.from({ length: count }, (_, i) => store(topic, i)));
        const page = await bus.history([topic], 0, 10 * count);
        expect(page.messages.length).toBeLessThanOrEqual(historyPageMessagesMax);
        expect(page.more).toBe(true);
      });

      it('is empty for a topic that nobody published to', async () => {
        const filters = [`cf-store.${unique()}`];
        const end = (await bus.head(['cf-store.x'])).offset;
        expect(await bus.history(filters, end, 10)).toMatchObject({
          messages: [],
          more: false,
          complete: true,
        });
        expect((await bus.latest(filters, 3)).messages).toEqual([]);
      });

      it('answers the latest messages, in order', async () => {
        const topic = `cf-store.${unique()}`;
        const a = await storeMany(`${topic}.a`, 3);
        const b = await storeMany(`${topic}.b`, 3);
        await store(`${topic}-other`, 1);
        const two = await bus.latest([`${topic}.a`], 2);
        expect(offsets(two.messages)).toEqual(offsets(a.slice(1)));
        expect(two).toMatchObject({ more: false, epoch: a[0]!.epoch });
        expect(offsets((await bus.latest([`${topic}.a`], 50)).messages)).toEqual(offsets(a));
        for (const filters of [[`${topic}.*`], [`${topic}.*`, `${topic}.>`]]) {
          const { messages } = await bus.latest(filters, 4);
          expect(offsets(messages)).toEqual(offsets([...a.slice(2), ...b]));
          expectChain(messages, a[1]!.offset);
        }
      });
    });

    describe('recovery', () => {
      async function expectRecoverable(filters: readonly string[], offset: number, expected: boolean) {
        expect(await bus.recoverable(filters, offset)).toBe(expected);
        expect((await bus.history(filters, offset, 1)).complete).toBe(expected);
      }

      it('is possible for a topic that was merely quiet', async () => {
        const topic = `cf-store.${unique()}`;
        const { offset } = await store(topic, 1);
        await storeMany(`${topic}-busy`, 20);
        const end = (await bus.head(['cf-store.x'])).offset;
        for (const filters of [[topic], [`${topic}.>`, topic], [`${topic}-silent`]]) {
          await expectRecoverable(filters, offset, true);
          await expectRecoverable(filters, end, true);
        }
      });

      it('is not possible from beyond the end of the stream', async () => {
        const topic = `cf-store.${unique()}`;
        const { offset } = await store(topic, 1);
        expect(await bus.recoverable([topic], offset)).toBe(true);
        expect(await bus.recoverable([topic], offset + 1000)).toBe(false);
        expect(await bus.recoverable([`${topic}.>`], offset + 1000)).toBe(false);
      });

      it('is not possible where messages were dropped by count, of this topic and not of another', async () => {
        const topic = `cf-count.${unique()}`;
        const quiet = await store(`${topic}.quiet`, 1);
        const published = await storeMany(`${topic}.busy`, historyMax * 2);
        const kept = published.slice(historyMax);
        for (const filters of [[`${topic}.busy`], [`${topic}.*`]]) {
          await expectRecoverable(filters, published[0]!.offset, false);
          await expectRecoverable(filters, kept[0]!.offset, true);
          await expectRecoverable(filters, kept.at(-1)!.offset, true);
        }
        await expectRecoverable([`${topic}.quiet`], quiet.offset, true);
        expect(offsets((await bus.history([`${topic}.busy`], 0, 100)).messages)).toEqual(offsets(kept));
        expect(offsets((await bus.latest([`${topic}.busy`], 100)).messages)).toEqual(offsets(kept));
        const all = await bus.history([`${topic}.*`], 0, 100);
        expect(offsets(all.messages)).toEqual([quiet.offset, ...offsets(kept)]);
      });

      it('is not possible where messages were dropped by age, but at the end of the stream', async () => {
        const topic = `cf-age.${unique()}`;
        const [first, second] = await storeMany(topic, 2);
        if (engine.clock !== undefined) engine.clock.advance(historySec * 1000 + 1);
        await eventually('both are dropped', async () => {
          const { messages, upTo } = await bus.history([topic], 0, 10);
          // Copies of a stream drop by timers of their own. That there is nothing up to an offset is what all of them hold.
          return messages.length === 0 && upTo >= second!.offset;
        });
        await expectRecoverable([topic], first!.offset, false);
        await expectRecoverable([topic], second!.offset, true);
        const { key, head } = await listenStored(topic);
        expect(head).toMatchObject({ epoch: second!.epoch, offset: second!.offset });
        await expectRecoverable([topic], head.offset, true);
        const third = await store(topic, 3);
        expect(third.offset).toBeGreaterThan(second!.offset);
        expect((await stored(key, 1))[0]?.prev).toBeLessThanOrEqual(head.offset);
      });
    });

    describe('duplicates', () => {
      it('are answered with the first place and not delivered again', async () => {
        const topic = `cf-store.${unique()}`;
        const { key } = await listenStored(topic);
        const first = await store(topic, 'a', { id: 'order 1' });
        const again = await store(topic, 'a', { id: 'order 1' });
        expect(first.duplicate).toBe(false);
        expect(again).toEqual({ epoch: first.epoch, offset: first.offset, duplicate: true });
        const fence = await store(topic, 'fence', { id: 'order 2' });
        await stored(key, 2);
        expect(offsets(recorder.stored(key))).toEqual([first.offset, fence.offset]);
        expect(offsets((await bus.history([topic], 0, 10)).messages)).toEqual([first.offset, fence.offset]);
      });

      it('are those of one publisher and one topic only', async () => {
        const topic = `cf-store.${unique()}`;
        const published = [
          await store(topic, 1, { id: 'x', publisher: 'a' }),
          await store(topic, 2, { id: 'x', publisher: 'b' }),
          await store(`${topic}.other`, 3, { id: 'x', publisher: 'a' }),
          await store(topic, 4, { id: 'xx', publisher: 'a' }),
          await store(topic, 5, { id: 'x', publisher: 'ax' }),
          await store(topic, 6),
          await store(topic, 6),
        ];
        expect(published.map(({ duplicate }) => duplicate)).toEqual(published.map(() => false));
        expect(new Set(offsets(published)).size).toBe(published.length);
      });

      it('are one message when they are published at once', async () => {
        const topic = `cf-store.${unique()}`;
        const published = await Promise.all(
          Array.from({ length: 10 }, () => store(topic, 1, { id: 'same' })),
        );
        expect(new Set(offsets(published)).size).toBe(1);
        expect(published.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
        expect((await bus.history([topic], 0, 20)).messages).toHaveLength(1);
      });

      const { clock } = engine;
      if (clock !== undefined) {
        it('are forgotten after two minutes and not before', async () => {
          const topic = `cf-store.${unique()}`;
          const first = await store(topic, 1, { id: 'old' });
          clock.advance(deduplicationMs - 1);
          expect((await store(topic, 1, { id: 'old' })).duplicate).toBe(true);
          clock.advance(1);
          const later = await store(topic, 1, { id: 'old' });
          expect(later.duplicate).toBe(false);
          expect(later.offset).toBeGreaterThan(first.offset);
        });
      }
    });

    describe('messages that are published together', () => {
      it('are each answered in their place: stored, stored before, or live', async () => {
        const topic = `cf-store.${unique()}`;
        const liveTopic = `cf-live.${unique()}`;
        const { key } = await listenStored(topic);
        const { key: liveKey } = await listen(liveTopic);
        const earlier = await store(topic, 'a', { id: 'known' });
        const one = (of: string, value: unknown, id?: string): OutgoingMessage => ({
          topic: of,
          payload: json(value),
          publisher: 'shop',
          ...(id !== undefined && { id }),
        });
        const [first, known, handedOver, twice, again, last, ...none] = await publisher.publishAll([
          one(topic, 'é 1'),
          one(topic, 'a', 'known'),
          one(liveTopic, 'live'),
          one(topic, 'b', 'new'),
          one(topic, 'b', 'new'),
          one(topic, '😀'.repeat(100), 'long'),
        ]);
        expect(none).toEqual([]);
        expect(handedOver).toBeUndefined();
        expect(known).toEqual({ ...earlier, duplicate: true });
        const stand = [first, twice, last] as Published[];
        expect(stand.map(({ duplicate }) => duplicate)).toEqual([false, false, false]);
        expect(again).toEqual({ ...stand[1], duplicate: true });
        expect(offsets(await stored(key, 4))).toEqual([earlier, ...stand].map(({ offset }) => offset));
        expect(texts(recorder.stored(key))).toEqual(
          ['a', 'é 1', 'b', '😀'.repeat(100)].map((value) => JSON.stringify(value)),
        );
        expect(texts(await live(liveKey, 1))).toEqual(['"live"']);
        expect(await publisher.publishAll([])).toEqual([]);
      });

      it('are stored in their order, however many they are and in whatever format', async () => {
        const topic = `cf-store.${unique()}`;
        const { key } = await listenStored(topic);
        const payloads = Array.from({ length: 1000 }, (_, i): Payload =>
          i % 100 === 99
            ? { format: 'msgpack', bytes: Uint8Array.of(i / 10) }
            : json(`${i} ${'x'.repeat(200)}`),
        );
        const outcomes = await publisher.publishAll(
          payloads.map((payload) => ({ topic, payload, publisher: 'shop' })),
        );
        const got = await stored(key, 1000);
        expect(offsets(got)).toEqual(offsets(outcomes as Published[]));
        expect(got.map(({ payload }) => plain(payload))).toEqual(payloads.map(plain));
      });

      it('fail one by one, without rejecting', async () => {
        const own = await engine.make(namespaces);
        const stopped = own.nodes[0]!;
        await stopped.start(new BusRecorder());
        await stopped.stop();
        const message = { topic: 'cf-store.1', payload: json(1), publisher: 'shop' };
        const outcomes = await stopped.publishAll([message, message]);
        expect(outcomes).toMatchObject([{ code: 'unavailable' }, { code: 'unavailable' }]);
        await own.dispose();
      });
    });

    it('has refused everything and delivered nothing more once stopped', async () => {
      const own = await engine.make(namespaces);
      const handler = new BusRecorder();
      const stopped = own.nodes[0]!;
      await stopped.start(handler);
      expect(stopped.connected).toBe(true);
      const topic = `cf-store.${unique()}`;
      await stopped.open({ key: 'k', filters: [topic] });
      const before = stopped.publish({ topic, payload: json(1), publisher: 'shop' });
      await stopped.stop();
      expect((await before)?.duplicate).toBe(false);
      const delivered = handler.stored('k').length;
      expect(stopped.connected).toBe(false);
      await expect(stopped.publish({ topic, payload: json(2), publisher: 'shop' })).rejects.toMatchObject({
        code: 'unavailable',
      });
      await expect(stopped.open({ key: 'l', filters: [topic] })).rejects.toMatchObject({
        code: 'unavailable',
      });
      expect(handler.stored('k')).toHaveLength(delivered);
      await own.dispose();
    });
  });
}

function plain(payload: Payload): unknown {
  return payload.format === 'json' ? payload : { format: 'msgpack', bytes: [...payload.bytes] };
}
