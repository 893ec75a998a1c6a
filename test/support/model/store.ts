import type { HistoryPage, StoredMessage } from '../../../broker/bus.js';
import type { Payload } from '../../../protocol/payload.js';
import type { Position } from '../../../protocol/position.js';
import { matches } from '../../../protocol/topic.js';

export interface Entry {
  readonly topic: string;
  readonly offset: number;
  readonly payload: Payload;
  /** The offset whose coming dropped it; Infinity while it is stored. */
  droppedAt: number;
}

interface Incarnation {
  readonly entries: Entry[];
  readonly byTopic: Map<string, Entry[]>;
}

/**
 * The stream of one namespace with everything that was ever in it: the truth that clients are judged by, and the store that the
 * simulated bus reads. What was stored at an earlier moment can still be asked for, which is how reads of a lagging replica are made.
 */
export class ModelStore {
  readonly #historyMax: number;
  readonly #pageMax: number;
  readonly #incarnations = new Map<string, Incarnation>();
  epoch = '';
  messages = 0;

  constructor(historyMax: number, pageMax: number) {
    this.#historyMax = historyMax;
    this.#pageMax = pageMax;
    this.replace();
  }

  get head(): Position {
    return { epoch: this.epoch, offset: this.lastOf(this.epoch) };
  }

  lastOf(epoch: string): number {
    return this.#of(epoch).entries.length;
  }

  /** A new incarnation of the stream: offsets start over. */
  replace(): void {
    this.epoch = `e${this.#incarnations.size + 1}`;
    this.#incarnations.set(this.epoch, { entries: [], byTopic: new Map() });
  }

  append(topic: string): Entry {
    const { byTopic, entries } = this.#of(this.epoch);
    const offset = entries.length + 1;
    const payload: Payload = { format: 'json', text: `"${this.epoch}:${offset}"` };
    const entry: Entry = { topic, offset, payload, droppedAt: Infinity };
    const ofTopic = byTopic.get(topic) ?? [];
    byTopic.set(topic, ofTopic);
    entries.push(entry);
    ofTopic.push(entry);
    const dropped = ofTopic[ofTopic.length - 1 - this.#historyMax];
    if (dropped !== undefined) dropped.droppedAt = offset;
    this.messages++;
    return entry;
  }

  /** Everything that was ever stored of the filters with `after < offset <= to`. */
  between(epoch: string, filters: readonly string[], after: number, to: number): Entry[] {
    const { entries } = this.#of(epoch);
    return entries.slice(after, to).filter((entry) => isOf(filters, entry));
  }

  /** The offset of the message of the filters before `offset`; 0 when there is none. */
  prevOf(filters: readonly string[], offset: number): number {
    return this.between(this.epoch, filters, 0, offset - 1).at(-1)?.offset ?? 0;
  }

  /** Whether something of the filters after `offset` had been dropped when `head` was the newest. */
  hasLost(epoch: string, filters: readonly string[], offset: number, head: number): boolean {
    return this.between(epoch, filters, offset, head).some((entry) => entry.droppedAt <= head);
  }

  history(
    { epoch, offset: head }: Position,
    filters: readonly string[],
    after: number,
    from = after,
  ): HistoryPage {
    const stored = this.between(epoch, filters, 0, head).filter((entry) => entry.droppedAt > head);
    const due = stored.filter((entry) => entry.offset > from);
    const page = due.slice(0, this.#pageMax);
    const more = due.length > page.length;
    return {
      epoch,
      messages: withPrev(page, stored),
      more,
      complete: !this.hasLost(epoch, filters, after, head),
      ...this.#completeness(epoch, filters, head),
      upTo: more ? (page.at(-1)?.offset ?? 0) : head,
    };
  }

  latest({ epoch, offset: head }: Position, filters: readonly string[], count: number): HistoryPage {
    const stored = this.between(epoch, filters, 0, head).filter((entry) => entry.droppedAt > head);
    return {
      epoch,
      messages: withPrev(stored.slice(-count), stored),
      more: false,
      complete: true,
      completeAfter: head,
      lostUpTo: -1,
      upTo: head,
    };
  }

  #completeness(epoch: string, filters: readonly string[], head: number) {
    const lost = this.between(epoch, filters, 0, head).findLast((entry) => entry.droppedAt <= head);
    const completeAfter = lost?.offset ?? 0;
    return { completeAfter, lostUpTo: completeAfter - 1 };
  }

  #of(epoch: string): Incarnation {
    const found = this.#incarnations.get(epoch);
    if (found === undefined) throw new RangeError(`there was no epoch ${epoch}`);
    return found;
  }
}

function isOf(filters: readonly string[], { topic }: Entry): boolean {
  return filters.some((filter) => matches(filter, topic));
}

function withPrev(page: readonly Entry[], stored: readonly Entry[]): StoredMessage[] {
  const start = page[0] === undefined ? 0 : stored.indexOf(page[0]);
  return page.map(({ offset, payload, topic }, i) => ({
    topic,
    payload,
    offset,
    prev: stored[start + i - 1]?.offset ?? 0,
  }));
}
