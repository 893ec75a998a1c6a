import { describe, expect, it } from 'vitest';
import type { HistoryPage } from '../../broker/bus.js';
import { unavailable } from '../../broker/errors.js';
import { HistoryReader } from '../../node/history-reader.js';

interface Read {
  readonly after: number;
  readonly resolve: (page: HistoryPage) => void;
  readonly reject: (error: Error) => void;
}

function page(upTo: number, more: Partial<HistoryPage> = {}): HistoryPage {
  return { epoch: 'e', messages: [], more: false, complete: true, upTo, ...more };
}

/** A reader whose reads the test answers. */
function createReader() {
  const reads: Read[] = [];
  const reader = new HistoryReader(
    (after) => new Promise((resolve, reject) => reads.push({ after, resolve, reject })),
  );
  return { reader, reads };
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
    expect((await Promise.all(others)).map(({ upTo }) => upTo)).toEqual([101, 101, 101]);
  });

  it('does not answer from a read that had left before the question, because it may miss what came in between', async () => {
    const { reader, reads } = createReader();
    void reader.read(1);
    await turn();
    const late = reader.read(1);
    reads[0]?.resolve(page(5));
    await turn();
    reads[1]?.resolve(page(9));
    expect((await late).upTo).toBe(9);
  });

  it('asks again when the shared page ends before the offset, or is incomplete for an earlier one only', async () => {
    const { reader, reads } = createReader();
    const early = reader.read(0);
    const late = reader.read(10);
    await turn();
    reads[0]?.resolve(page(5, { more: true, complete: false }));
    await turn();
    expect((await early).upTo).toBe(5);
    expect(reads.map(({ after }) => after)).toEqual([0, 10]);
    reads[1]?.resolve(page(20));
    expect(await late).toMatchObject({ upTo: 20, complete: true });
  });

  it('fails those who waited for a read that fails, and reads again for others', async () => {
    const { reader, reads } = createReader();
    const failed = Promise.allSettled([reader.read(0), reader.read(3)]);
    await turn();
    const next = reader.read(1);
    reads[0]?.reject(unavailable('away'));
    expect((await failed).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await turn();
    reads[1]?.resolve(page(2));
    expect((await next).upTo).toBe(2);
  });
});
