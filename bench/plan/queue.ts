/** One server that takes what has gathered, at most once in a while: a node that fans out. */
export interface QueueOptions {
  /** Of jobs, which come as a Poisson process. */
  readonly perSec: number;
  readonly jobs: number;
  /** From the start of one batch to that of the next, at least; 0: as soon as the server is free. */
  readonly windowSec: number;
  /** Jobs of one batch. */
  readonly batchMax: number;
  /** In [0, 1). */
  readonly random: () => number;
  /** The size of the next job, in whatever `serviceSec` counts. */
  readonly draw: () => number;
  /** How long the server is busy with a batch of such sizes. */
  readonly serviceSec: (sizes: readonly number[]) => number;
  /** Called for each job in the order in which they came: how long it waited, and how long its whole batch took then. */
  readonly served: (size: number, waitSec: number, serviceSec: number) => void;
}

/** @returns the share of the time for which the server was busy */
export function runQueue(options: QueueOptions): number {
  const { batchMax, draw, jobs, perSec, random, served, serviceSec, windowSec } = options;
  let nextAt = 0;
  let [freeAt, flushedAt, busy] = [0, -Infinity, 0];
  let [came, done] = [0, 0];
  const waiting: { readonly at: number; readonly size: number }[] = [];
  let head = 0;
  const arrive = (): void => {
    nextAt += exponential(perSec, random);
    waiting.push({ at: nextAt, size: draw() });
    came++;
  };
  while (done < jobs) {
    if (head === waiting.length) arrive();
    const start = Math.max(waiting[head]!.at, freeAt, flushedAt + windowSec);
    // One too many is drawn, whose time is not yet.
    while (waiting.at(-1)!.at <= start && came < jobs) arrive();
    const batch: { readonly at: number; readonly size: number }[] = [];
    while (head < waiting.length && batch.length < batchMax && waiting[head]!.at <= start) {
      batch.push(waiting[head++]!);
    }
    const took = serviceSec(batch.map(({ size }) => size));
    for (const { at, size } of batch) served(size, start - at, took);
    done += batch.length;
    busy += took;
    flushedAt = start;
    freeAt = start + took;
    if (head > trimAt) head -= waiting.splice(0, head).length;
  }
  return busy / Math.max(freeAt, Number.MIN_VALUE);
}

const trimAt = 10_000;

function exponential(perSec: number, random: () => number): number {
  return -Math.log(1 - random()) / perSec;
}

/** A Poisson count that is not 0. Above a mean of 50 the normal curve is near enough. */
export function positivePoisson(mean: number, random: () => number): number {
  if (mean > 50) return Math.max(1, Math.round(mean + Math.sqrt(mean) * normal(random)));
  // By the inverse of the distribution, without the part of 0.
  const none = Math.exp(-mean);
  const at = none + random() * (1 - none);
  let [count, probability, sum] = [0, none, none];
  while (sum < at && count < poissonMax) {
    count++;
    probability *= mean / count;
    sum += probability;
  }
  return Math.max(1, count);
}

const poissonMax = 1000;

/** Box and Muller, 1958. */
function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}
