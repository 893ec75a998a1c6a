import type { KV, KvEntry } from 'nats';
import { keyOf, putOver } from './nats-bucket.js';

/** A number of messages that were kept of each topic for some time. */
export interface HistoryLimit {
  /** Infinity: no limit. */
  readonly max: number;
  /** Nothing after this sequence was dropped by it. Infinity: it may be in force. */
  readonly upTo: number;
}

/** What an audit asks of the stream. */
export interface LimitedStream {
  readonly lastSeq: number;
  /** The limit in force. */
  readonly limit: number;
}

/** A change that was announced is done after this long, on each copy of the stream: the request for it is given up earlier. */
const changeMsMax = 10_000;

/**
 * The limits that have been in force on the stream of one namespace, in the bucket that all nodes share. With the present one alone, a topic that overflowed
 * under a smaller one would look complete.
 *
 * Who changes the limit of the stream writes the old and the new one here before, as open. Of the open ones only the smallest is kept, since it covers the
 * others. Audits close what is open and not in force, once the record has stood unchanged for so long that no change is under way. They close it at the end of
 * the stream, so that it ceases to matter when all that was stored up to there has expired.
 */
export class NatsLimits {
  readonly #kv: KV;
  readonly #key: string;
  /** The open limit in the record when it was last read. */
  #open: number | undefined;
  /** The revision of the record in which the limit in force is not the open one, and since when it is known here. */
  #unsettled = { revision: -1, since: 0 };

  constructor(kv: KV, namespace: string) {
    this.#kv = kv;
    // No namespace has a dot, so this is no key of an epoch.
    this.#key = `limits.${keyOf(namespace)}`;
  }

  /** Ask this after the state of the stream that it is to explain: then what ended before that state is here. */
  async read(): Promise<readonly HistoryLimit[]> {
    return this.#limitsIn(await this.#kv.get(this.#key));
  }

  /** Call this before the limit of the stream is changed. Writes in any case, so that no audit closes what was read before it. */
  async announce(...limits: readonly number[]): Promise<void> {
    const opened = limits.map((max) => ({ max, upTo: Infinity }));
    for (;;) {
      const entry = await this.#kv.get(this.#key);
      if (await this.#write([...this.#limitsIn(entry), ...opened], entry)) return;
    }
  }

  /** For a stream whose limit stays as it is: sees to it that it is in the record. */
  async confirm(max: number): Promise<void> {
    const limits = await this.read();
    if (!limits.some((limit) => limit.upTo === Infinity && limit.max <= max)) await this.announce(max);
  }

  /**
   * Part of an audit. Costs nothing while the limit in force is the open one.
   * @param state the stream at present
   */
  async settle(inForce: number, state: () => Promise<LimitedStream>): Promise<void> {
    if (this.#open === inForce) return;
    const entry = await this.#kv.get(this.#key);
    const limits = this.#limitsIn(entry);
    if (this.#open === inForce) return;
    const revision = entry?.revision ?? 0;
    const now = performance.now();
    if (this.#unsettled.revision !== revision) this.#unsettled = { revision, since: now };
    if (now - this.#unsettled.since < changeMsMax) return;
    const { lastSeq, limit } = await state();
    const closed = limits.map(({ max, upTo }) => ({ max, upTo: upTo === Infinity ? lastSeq : upTo }));
    // Somebody else who writes at the same moment has announced a change, or does the same.
    await this.#write([...closed, { max: limit, upTo: Infinity }], entry);
  }

  /** The stream is another one, or an older copy, which ends here: what is known of later sequences was of the one before. */
  async cut(lastSeq: number): Promise<void> {
    for (;;) {
      const entry = await this.#kv.get(this.#key);
      const limits = this.#limitsIn(entry);
      const isLater = ({ upTo }: HistoryLimit): boolean => upTo !== Infinity && upTo > lastSeq;
      if (!limits.some(isLater)) return;
      const cut = limits.map((limit) => (isLater(limit) ? { ...limit, upTo: lastSeq } : limit));
      if (await this.#write(cut, entry)) return;
    }
  }

  #limitsIn(entry: KvEntry | null): readonly HistoryLimit[] {
    const limits = readLimits(entry);
    this.#open = limits.find(({ upTo }) => upTo === Infinity)?.max;
    return limits;
  }

  async #write(limits: readonly HistoryLimit[], before: KvEntry | null): Promise<boolean> {
    const left = withoutCovered(limits);
    // JSON has no Infinity, and writes null for it.
    if (!(await putOver(this.#kv, this.#key, left, before))) return false;
    this.#open = left.find(({ upTo }) => upTo === Infinity)?.max;
    return true;
  }
}

/** One that was not smaller and did not last longer than another one says nothing. */
function withoutCovered(limits: readonly HistoryLimit[]): HistoryLimit[] {
  const kept: HistoryLimit[] = [];
  for (const limit of [...limits].sort((a, b) => a.max - b.max || b.upTo - a.upTo)) {
    if (kept.every((other) => other.upTo < limit.upTo)) kept.push(limit);
  }
  return kept;
}

function readLimits(entry: KvEntry | null): readonly HistoryLimit[] {
  if (entry === null) return [];
  try {
    const limits = JSON.parse(entry.string()) as unknown;
    if (Array.isArray(limits)) return limits.map(readLimit);
  } catch {
    // Written by nobody of us.
  }
  return [unknownLimit];
}

function readLimit(value: unknown): HistoryLimit {
  if (typeof value !== 'object' || value === null) return unknownLimit;
  const { max, upTo } = value as Record<string, unknown>;
  const isCount = (one: unknown): boolean => one === null || (Number.isSafeInteger(one) && Number(one) >= 0);
  if (!isCount(max) || !isCount(upTo)) return unknownLimit;
  return { max: Number(max ?? Infinity), upTo: Number(upTo ?? Infinity) };
}

/** Each topic may have overflowed: the safe answer when nothing is known. */
const unknownLimit: HistoryLimit = { max: 1, upTo: Infinity };
