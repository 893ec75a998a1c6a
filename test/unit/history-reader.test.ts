import { describe, expect, it } from 'vitest';
import type { HistoryPage, StoredMessage } from '../../broker/bus.js';
import { unavailable } from '../../broker/errors.js';
import { HistoryReader } from '../../node/history-reader.js';

interface Read {
  readonly after: number;
  readonly from: number;
  readonly resolve: (page: HistoryPage) => void;
  readonly reject: (error: Error) => void;
}

function page(upTo: number, more: Partial<HistoryPage> = {}): HistoryPage {
  return {
    epoch: 'e',
    messages: [],
    more: false,
    complete: true,
    completeAfter: 0,
    lostUpTo: -1,
    upTo,
    ...more,
  };
}

/** A reader whose reads the test answers. */
function createReader() {
  const reads: Read[] = [];
  const reader = new HistoryReader({
    readHistory: (after, _limit, from) =>
      new Promise((resolve, reject) => reads.push({ after, from, resolve, reject })),
  });
  return { reader, reads };
}

function stored(offset: number): StoredMessage {
  return { topic: 'a.1', offset, prev: 0, payload: { format: 'json', text: '1' } };
}

/** Lets every promise that can settle do so. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('HistoryReader', () => {
  it('reads once for all who ask in one turn and come after the first, and once more for the rest', async () => {
    const { reader, reads } = createReader();
    const pages = Promise.all(Array.from({ length: 2000 }, (_, i) => reader.read((i * 7919) % 1000)));
    await turn();
    reads[0]?.resolve(page(1000));
    await turn();
    reads[1]?.resolve(page(1000));
    expect(new Set((await pages).map(({ upTo }) => upTo))).toEqual(new Set([1000]));
    expect(reads.length).toBeLessThanOrEqual(2);
    expect(Math.min(...reads.map(({ after }) => after))).toBe(0);
  });

  it('reads from the smallest offset of those who have to wait', async () => {
    const { reader, reads } = createReader();
    const first = reader.read(50);
    await turn();
    const others = [reader.read(40), reader.read(20), reader.read(60)];
    await turn();
    expect(reads.map(({ after }) => after)).toEqual([50]);
    reads[0]?.resolve(page(100));
    await turn();
    expect(reads.map(({ after }) => after)).toEqual([50, 20]);
    reads[1]?.resolve(page(101));
    expect((await first).upTo).toBe(100);
    expect((await Promise.all(others)).map(({ upTo }) => upTo)).toEqual([101, 101, 100]);
  });

  it('does not say that there is nothing from a read that had left before the question, because it may miss what came in between', async () => {
    const { reader, reads } = createReader();
    void reader.read(1);
    await turn();
    const late = reader.read(5);
    reads[0]?.resolve(page(5));
    await turn();
    reads[1]?.resolve(page(9));
    expect((await late).upTo).toBe(9);
  });

  it('serves who comes while a read runs, and for a moment afterwards, from its page', async () => {
    const { reader, reads } = createReader();
    const first = reader.read(1);
    await turn();
    const late = reader.read(3);
    reads[0]?.resolve(page(5));
    const kept = await first;
    expect(await late).toBe(kept);
    expect(await reader.read(4)).toBe(kept);
    void reader.read(5);
    await turn();
    expect(reads).toHaveLength(2);
  });

  it('begins earlier than asked when an earlier page was kept, so that others who come from further back are served', async () => {
    const { reader, reads } = createReader();
    const first = reader.read(20_000);
    await turn();
    // One message in ten offsets: half a page reaches 5,000 back.
    const messages = Array.from({ length: 100 }, (_, i) => stored(20_010 + 10 * i));
    reads[0]?.resolve(page(21_000, { messages }));
    await first;
    const second = reader.read(19_000);
    await turn();
    expect(reads[1]).toMatchObject({ after: 19_000, from: 16_000 });
    reads[1]?.resolve(page(21_005));
    await second;
    expect((await reader.read(16_001)).upTo).toBe(21_005);
    expect(reads).toHaveLength(2);
  });

  it('reads from where it was asked when the page that began earlier is full before it', async () => {
    const { reader, reads } = createReader();
    const first = reader.read(500);
    await turn();
    reads[0]?.resolve(page(600));
    await first;
    const second = reader.read(300);
    await turn();
    expect(reads[1]?.from).toBe(0);
    reads[1]?.resolve(page(200, { more: true }));
    await turn();
    expect(reads[2]).toMatchObject({ after: 300, from: 300 });
    reads[2]?.resolve(page(600));
    expect((await second).upTo).toBe(600);
  });

  it('does not keep a page that does not go to the end, nor one of before it was told to forget', async () => {
    const { reader, reads } = createReader();
    const partial = reader.read(1);
    await turn();
    reads[0]?.resolve(page(50, { more: true }));
    await partial;
    const old = reader.read(1);
    await turn();
    reader.forget();
    const next = reader.read(1);
    reads[1]?.resolve(page(90, { epoch: 'old' }));
    await turn();
    reads[2]?.resolve(page(10, { epoch: 'new' }));
    expect((await old).epoch).toBe('old');
    expect((await next).epoch).toBe('new');
    expect((await reader.read(2)).epoch).toBe('new');
  });

  it('judges a kept page for each offset by itself, and reads again where that is not known', async () => {
    const { reader, reads } = createReader();
    const first = reader.read(10);
    await turn();
    reads[0]?.resolve(page(100, { complete: false, completeAfter: 50, lostUpTo: 30 }));
    expect((await first).complete).toBe(false);
    expect((await reader.read(30)).complete).toBe(false);
    expect((await reader.read(50)).complete).toBe(true);
    void reader.read(40);
    await turn();
    expect(reads.map(({ after }) => after)).toEqual([10, 40]);
  });

  it('asks again when the shared page ends before the offset, or is incomplete for an earlier one only', async () => {
    const { reader, reads } = createReader();
    const early = reader.read(0);
    const late = reader.read(10);
    await turn();
    reads[0]?.resolve(page(5, { more: true, complete: false, completeAfter: Infinity, lostUpTo: 0 }));
    await turn();
    expect((await early).upTo).toBe(5);
    expect(reads.map(({ after }) => after)).toEqual([0, 10]);
    reads[1]?.resolve(page(20));
    expect(await late).toMatchObject({ upTo: 20, complete: true });
  });

  it('fails those who waited for a read that fails, and reads again for others', async () => {
    const { reader, reads } = createReader();
    const failed = Promise.allSettled([reader.read(2), reader.read(3)]);
    await turn();
    const next = reader.read(1);
    reads[0]?.reject(unavailable('away'));
    expect((await failed).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await turn();
    reads[1]?.resolve(page(2));
    expect((await next).upTo).toBe(2);
  });
});
