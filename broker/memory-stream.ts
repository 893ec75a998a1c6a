import { randomInt } from 'node:crypto';
import type { Payload } from '../protocol/payload.js';
import type { Position } from '../protocol/position.js';
import { isPattern, matches } from '../protocol/topic.js';
import { historyPageBytesMax, historyPageMessagesMax, type HistoryPage, type StoredMessage } from './bus.js';
import type { NamespaceSettings } from './namespaces.js';
import { OrderedList } from './ordered-list.js';

/** What a stored message costs beside its payload and topic: an estimate for the bytes bound. */
const entryOverheadBytes = 200;
/** A client's position in a new stream is never valid in an old one: 36^8 epochs. */
const epochChars = 8;

export interface Appended {
  readonly offset: number;
  /** The topic's previous stored offset, 0 when there was none. */
  readonly prev: number;
  /** The oldest offset that was stored when the message came. */
  readonly first: number;
}

interface Entry {
  readonly offset: number;
  readonly log: TopicLog;
  /** Undefined once the message was dropped and only its place in the stream's order remains. */
  payload: Payload | undefined;
  readonly payloadBytes: number;
  readonly at: number;
}

interface TopicLog {
  readonly topic: string;
  readonly entries: OrderedList<Entry>;
  /** Every message of the topic that was dropped has this offset or a smaller one. */
  dropped: number;
}

/** The stored entries that an interest reads, in order, with some that are not its own between them. */
interface View {
  readonly entries: OrderedList<Entry>;
  holds(entry: Entry): boolean;
}

const offsetOf = (entry: Entry): number => entry.offset;

/**
 * The stored messages of one durable namespace: one sequence of offsets from 1, per topic at most `historyMax` messages,
 * none older than `historySec`. What is too old is dropped when the stream is next used.
 */
export class MemoryStream {
  readonly epoch = randomInt(36 ** epochChars)
    .toString(36)
    .padStart(epochChars, '0');
  readonly #settings: NamespaceSettings;
  readonly #now: () => number;
  readonly #topics = new Map<string, TopicLog>();
  readonly #order = new OrderedList<Entry>(offsetOf);
  /** Entries in `#order` whose message was dropped. Never at its front. */
  #holes = 0;
  /** As `TopicLog.dropped`, for all topics that have no log any more. */
  #forgotten = 0;
  #last = 0;
  #bytes = 0;

  constructor(settings: NamespaceSettings, now: () => number) {
    this.#settings = settings;
    this.#now = now;
  }

  get head(): Position {
    return { epoch: this.epoch, offset: this.#last };
  }

  /** Of payloads, topics and an estimate of what keeping them costs. */
  get bytes(): number {
    return this.#bytes;
  }

  get messages(): number {
    return this.#order.length - this.#holes;
  }

  get topics(): number {
    return this.#topics.size;
  }

  /** When the oldest message was stored, ms; undefined when there is none. */
  get oldestAt(): number | undefined {
    return this.#order.at(0)?.at;
  }

  append(topic: string, payload: Payload): Appended {
    this.expire();
    const first = this.#first;
    const log = this.#logOf(topic);
    const prev = log.entries.newest?.offset ?? 0;
    const entry = {
      offset: ++this.#last,
      log,
      payload,
      payloadBytes: bytesOf(payload),
      at: this.#now(),
    };
    log.entries.push(entry);
    this.#order.push(entry);
    this.#bytes += storedBytes(entry);
    // At least one stays, so that a log is only ever emptied from the front of the stream.
    while (log.entries.length > Math.max(1, this.#settings.historyMax)) this.#dropOldestOf(log);
    return { offset: entry.offset, prev, first };
  }

  history(filters: readonly string[], after: number, limit: number, from = after): HistoryPage {
    this.expire();
    const countMax = clampCount(limit);
    const view = this.#view(filters);
    const start = view.entries.indexAfter(Math.min(from, after));
    let prev = newestBefore(view, start)?.offset ?? 0;
    const messages: StoredMessage[] = [];
    let bytes = 0;
    let more = false;
    for (let i = start; i < view.entries.length; i++) {
      const entry = view.entries.at(i);
      if (entry?.payload === undefined || !view.holds(entry)) continue;
      more = messages.length >= countMax || bytes >= historyPageBytesMax;
      if (more) break;
      messages.push({ topic: entry.log.topic, payload: entry.payload, offset: entry.offset, prev });
      prev = entry.offset;
      bytes += entry.payloadBytes;
    }
    const upTo = more ? prev : this.#last;
    return { epoch: this.epoch, messages, more, upTo, ...this.#completeness(filters, after) };
  }

  latest(filters: readonly string[], count: number): HistoryPage {
    this.expire();
    const countMax = clampCount(count);
    const view = this.#view(filters);
    const newestFirst: StoredMessage[] = [];
    let index = view.entries.length;
    while (newestFirst.length < countMax) {
      const entry = newestBefore(view, index);
      if (entry?.payload === undefined) break;
      index = view.entries.indexAfter(entry.offset - 1);
      const prev = newestBefore(view, index)?.offset ?? 0;
      newestFirst.push({ topic: entry.log.topic, payload: entry.payload, offset: entry.offset, prev });
    }
    const messages = newestFirst.reverse();
    // Messages of a topic are dropped oldest first, so nothing is missing after the first that is left.
    const completeAfter = (messages[0]?.offset ?? this.#last + 1) - 1;
    const { epoch } = this;
    return { epoch, messages, more: false, complete: true, completeAfter, lostUpTo: -1, upTo: this.#last };
  }

  /**
   * More than the rule of a real stream can tell (`first_seq` and the count of a topic), and never less: it is known
   * here what was dropped.
   */
  recoverable(filters: readonly string[], offset: number): boolean {
    this.expire();
    if (offset > this.#last) return false;
    const only = exactTopic(filters);
    if (only !== undefined) return offset >= (this.#topics.get(only)?.dropped ?? this.#forgotten);
    if (offset < this.#forgotten) return false;
    for (const log of this.#topics.values()) {
      if (offset < log.dropped && filters.some((filter) => matches(filter, log.topic))) return false;
    }
    return true;
  }

  #completeness(
    filters: readonly string[],
    after: number,
  ): Pick<HistoryPage, 'complete' | 'completeAfter' | 'lostUpTo'> {
    const complete = this.recoverable(filters, after);
    const only = exactTopic(filters);
    if (only === undefined) {
      return complete
        ? { complete, completeAfter: after, lostUpTo: -1 }
        : { complete, completeAfter: Infinity, lostUpTo: after };
    }
    const dropped = this.#topics.get(only)?.dropped ?? this.#forgotten;
    return { complete, completeAfter: dropped, lostUpTo: dropped - 1 };
  }

  /** The offset of the newest stored message of an interest; 0 when there is none. */
  newest(filters: readonly string[]): number {
    this.expire();
    const view = this.#view(filters);
    return newestBefore(view, view.entries.length)?.offset ?? 0;
  }

  /** Drops what is older than `historySec`. */
  expire(): void {
    const until = this.#now() - this.#settings.historySec * 1000;
    for (let at = this.oldestAt; at !== undefined && at <= until; at = this.oldestAt) this.dropOldest();
  }

  dropOldest(): void {
    const oldest = this.#order.at(0);
    if (oldest !== undefined) this.#dropOldestOf(oldest.log);
  }

  get #first(): number {
    return this.#order.at(0)?.offset ?? this.#last + 1;
  }

  #logOf(topic: string): TopicLog {
    let log = this.#topics.get(topic);
    if (log === undefined) {
      log = { topic, entries: new OrderedList<Entry>(offsetOf), dropped: this.#forgotten };
      this.#topics.set(topic, log);
    }
    return log;
  }

  #dropOldestOf(log: TopicLog): void {
    const entry = log.entries.shift();
    if (entry === undefined) return;
    entry.payload = undefined;
    log.dropped = entry.offset;
    this.#bytes -= storedBytes(entry);
    this.#holes += 1;
    if (log.entries.length === 0) {
      this.#topics.delete(log.topic);
      this.#forgotten = Math.max(this.#forgotten, entry.offset);
    }
    this.#closeHoles();
  }

  #closeHoles(): void {
    for (let front = this.#order.at(0); front !== undefined; front = this.#order.at(0)) {
      if (front.payload !== undefined) break;
      this.#order.shift();
      this.#holes -= 1;
    }
    if (this.#holes > 64 && this.#holes * 2 > this.#order.length) {
      this.#order.retain((entry) => entry.payload !== undefined);
      this.#holes = 0;
    }
  }

  #view(filters: readonly string[]): View {
    const only = exactTopic(filters);
    if (only !== undefined) {
      const entries = this.#topics.get(only)?.entries ?? new OrderedList<Entry>(offsetOf);
      return { entries, holds: () => true };
    }
    const known = new Map<TopicLog, boolean>();
    const holds = ({ log }: Entry): boolean => {
      let held = known.get(log);
      if (held === undefined) {
        held = filters.some((filter) => matches(filter, log.topic));
        known.set(log, held);
      }
      return held;
    };
    return { entries: this.#order, holds };
  }
}

/** The topic of an interest in just one; undefined for patterns and groups. */
export function exactTopic(filters: readonly string[]): string | undefined {
  const [first] = filters;
  return filters.length === 1 && first !== undefined && !isPattern(first) ? first : undefined;
}

function newestBefore(view: View, index: number): Entry | undefined {
  for (let i = index - 1; i >= 0; i--) {
    const entry = view.entries.at(i);
    if (entry?.payload !== undefined && view.holds(entry)) return entry;
  }
  return undefined;
}

function bytesOf(payload: Payload): number {
  return payload.format === 'json' ? Buffer.byteLength(payload.text) : payload.bytes.byteLength;
}

function storedBytes(entry: Entry): number {
  return entry.payloadBytes + entry.log.topic.length + entryOverheadBytes;
}

function clampCount(count: number): number {
  return Math.min(Math.max(1, count), historyPageMessagesMax);
}
