import type { SubscribedTopic, TopicRequest } from '../protocol/frames.js';
import { formatPosition, parsePosition, type Position } from '../protocol/position.js';
import { contains, isPattern, matches, namespaceOf } from '../protocol/topic.js';

/** Where one handler stands in its topic or pattern. */
export interface Cursor {
  /** Everything up to here was handled, or reported as lost. Undefined until the server has told where it starts. */
  offset: number | undefined;
  /** Up to here nothing more will come, by what a `pong` said. */
  floor: number;
}

/** One topic or pattern as the server knows it, with everybody who listens to it here. */
interface Held<C extends Cursor> {
  readonly filter: string;
  readonly cursors: Set<C>;
  /** Undefined on live topics, and until the first answer of the server. */
  epoch: string | undefined;
  /** Answered by `subscribed` on this connection and not asked for again since. */
  attached: boolean;
  /** How many stored messages to begin with, until that is answered. */
  last: number | undefined;
  /** The number of the request that asked for it; undefined when the handshake did. */
  req: number | undefined;
  /** That request has its answer, so one without a number is the server's own. */
  answered: boolean;
}

/** What an answer to a subscription means: `again` when it has to be asked for once more, `stale` when it answers an older request. */
export type Attached = 'attached' | 'unrecovered' | 'again' | 'stale';

/** Positions that are carried on although nobody subscribes to their topics now. */
const storedMax = 512;

type Granted = Exclude<SubscribedTopic, { readonly error: unknown }>;

/**
 * Where the handlers of a client stand: what to ask for, and whom a message is new to. Pure bookkeeping, in the order in which frames arrive.
 *
 * A durable message is for each handler whose topic or pattern matches and whose offset is below it. Offsets count only from `subscribed` on:
 * what comes for another subscription before that would make a handler step over its own replay.
 */
export class Positions<C extends Cursor> {
  readonly #held = new Map<string, Held<C>>();
  readonly #patterns = new Set<Held<C>>();
  /** Positions of an earlier life that nobody has asked for yet. */
  #stored = new Map<string, Position>();

  /** Positions of an earlier life, for what is held already without one and for what will be. */
  restore(stored: ReadonlyMap<string, Position>): void {
    this.#stored = new Map([...stored].slice(-storedMax));
    for (const held of this.#held.values()) {
      if (held.epoch === undefined) this.#resume(held);
    }
  }

  has(filter: string): boolean {
    return this.#held.has(filter);
  }

  filters(): string[] {
    return [...this.#held.keys()];
  }

  /**
   * Adds a handler. `last` counts when nothing is stored about the topic; a handler that joins others without it starts with the next message.
   * @returns whether the server has to be asked
   */
  add(filter: string, cursor: C, last: number | undefined): boolean {
    const known = this.#held.get(filter);
    const held = known ?? this.#hold(filter);
    held.cursors.add(cursor);
    if (known === undefined) {
      held.last = last;
      this.#resume(held);
      return true;
    }
    if (last !== undefined) {
      held.last = Math.max(last, held.last ?? 0);
      return true;
    }
    const start = Math.max(-1, ...[...held.cursors].map((other) => resumeOf(other) ?? -1));
    if (held.epoch !== undefined && start >= 0) cursor.offset = cursor.floor = start;
    return false;
  }

  /** @returns whether nobody is left who listens to the filter */
  remove(filter: string, cursor: C): boolean {
    const held = this.#held.get(filter);
    if (held === undefined || !held.cursors.delete(cursor) || held.cursors.size > 0) return false;
    this.#held.delete(filter);
    this.#patterns.delete(held);
    return true;
  }

  /** What to ask for now. From here on the filter counts as not attached, unless it is asked for its last messages only. */
  request(filter: string): TopicRequest {
    const held = this.#held.get(filter);
    if (held === undefined) return { topic: filter };
    if (held.last !== undefined) return { topic: filter, last: held.last };
    held.attached = false;
    const offset = positionOf(held);
    return held.epoch === undefined || offset === undefined
      ? { topic: filter }
      : { topic: filter, epoch: held.epoch, offset };
  }

  /** It was asked for with this number; without one, in the handshake. Answers to older requests do not count any more. */
  asked(filter: string, req: number | undefined): void {
    const held = this.#held.get(filter);
    if (held === undefined) return;
    held.req = req;
    held.answered = false;
  }

  /** The newest request for the filter was refused. */
  refused(filter: string): void {
    const held = this.#held.get(filter);
    if (held !== undefined) held.answered = true;
  }

  /** The filters of one request. */
  askedBy(req: number): string[] {
    return [...this.#held.values()].filter((held) => held.req === req).map(({ filter }) => filter);
  }

  /**
   * Whether an answer is to the newest request for the filter, or one that nobody asked for. One without a number that comes while a request is under
   * way may be to the handshake before it; what it says will be in the answer to the request.
   */
  isCurrent(filter: string, req: number | undefined): boolean {
    const held = this.#held.get(filter);
    return req === held?.req || (req === undefined && held?.answered !== false);
  }

  /** The answer of the server for a filter that is held. */
  subscribed(answer: Granted, req: number | undefined): Attached {
    const held = this.#held.get(answer.topic);
    if (held === undefined || !this.isCurrent(answer.topic, req)) return 'stale';
    const askedLast = held.last !== undefined;
    held.last = undefined;
    held.answered = true;
    held.attached = true;
    if (!('epoch' in answer)) return 'attached';
    const { epoch, offset, recovered } = answer;
    const known = held.epoch;
    held.epoch = epoch;
    if (known === epoch && recovered) {
      const behind = startAt(held, offset);
      // A snapshot that begins later than others stand would make them miss what is between.
      if (!behind || !askedLast) return 'attached';
      held.attached = false;
      return 'again';
    }
    const hadBegun = [...held.cursors].some((cursor) => cursor.offset !== undefined);
    for (const cursor of held.cursors) cursor.offset = cursor.floor = offset;
    return known !== undefined && hadBegun ? 'unrecovered' : 'attached';
  }

  /** The handlers that a message is new to. They are taken to handle it. */
  accept(topic: string, offset: number | undefined): C[] {
    const wanting: C[] = [];
    const exact = this.#held.get(topic);
    if (exact !== undefined) take(exact, offset, wanting);
    for (const held of this.#patterns) if (matches(held.filter, topic)) take(held, offset, wanting);
    return wanting;
  }

  /** Offsets up to `to` are lost for good, for the subscription named and for all that it contains. */
  gap(filter: string, to: number): void {
    for (const held of this.#held.values()) {
      if (!held.attached || !contains(filter, held.filter)) continue;
      for (const cursor of held.cursors) {
        if (cursor.offset !== undefined) cursor.offset = Math.max(cursor.offset, to);
      }
    }
  }

  /** The floors of a `pong`. They say nothing of subscriptions that wait for an answer. */
  floors(floors: Readonly<Record<string, string>>): void {
    for (const held of this.#held.values()) {
      const floor = held.attached ? parsePosition(floors[namespaceOf(held.filter)] ?? '') : undefined;
      if (floor?.ok !== true || floor.value.epoch !== held.epoch) continue;
      for (const cursor of held.cursors) cursor.floor = Math.max(cursor.floor, floor.value.offset);
    }
  }

  /** The server sends it no more. */
  release(filter: string): void {
    const held = this.#held.get(filter);
    if (held !== undefined) held.attached = false;
  }

  /** The connection is gone: nothing counts until the next `subscribed`. */
  detach(): void {
    for (const held of this.#held.values()) held.attached = false;
  }

  /** The positions of all durable subscriptions, and those of an earlier life that may still be asked for. */
  stored(): Record<string, string> {
    const entries = Array.from(this.#stored, ([filter, at]) => [filter, formatPosition(at)] as const);
    for (const held of this.#held.values()) {
      const offset = positionOf(held);
      if (held.epoch === undefined || offset === undefined) continue;
      entries.push([held.filter, formatPosition({ epoch: held.epoch, offset })]);
    }
    return Object.fromEntries(entries);
  }

  #hold(filter: string): Held<C> {
    const held: Held<C> = {
      filter,
      cursors: new Set(),
      epoch: undefined,
      attached: false,
      last: undefined,
      req: undefined,
      answered: true,
    };
    this.#held.set(filter, held);
    if (isPattern(filter)) this.#patterns.add(held);
    return held;
  }

  #resume(held: Held<C>): void {
    const position = this.#stored.get(held.filter);
    if (position === undefined) return;
    this.#stored.delete(held.filter);
    held.epoch = position.epoch;
    held.last = undefined;
    for (const cursor of held.cursors) cursor.offset = cursor.floor = position.offset;
  }
}

function resumeOf({ offset, floor }: Cursor): number | undefined {
  return offset === undefined ? undefined : Math.max(offset, floor);
}

/** Where the one that is furthest back stands; undefined when none has begun. */
function positionOf<C extends Cursor>({ cursors }: Held<C>): number | undefined {
  let least: number | undefined;
  for (const cursor of cursors) {
    const offset = resumeOf(cursor);
    if (offset !== undefined) least = Math.min(offset, least ?? offset);
  }
  return least;
}

/** Starts those who have not begun after `offset`. @returns whether one of the others stands before it */
function startAt<C extends Cursor>({ cursors }: Held<C>, offset: number): boolean {
  let behind = false;
  for (const cursor of cursors) {
    const own = resumeOf(cursor);
    if (own === undefined) cursor.offset = cursor.floor = offset;
    else if (own < offset) behind = true;
  }
  return behind;
}

function take<C extends Cursor>(held: Held<C>, offset: number | undefined, wanting: C[]): void {
  if (offset !== undefined && !held.attached) return;
  for (const cursor of held.cursors) {
    if (offset !== undefined) {
      if (cursor.offset === undefined || offset <= cursor.offset) continue;
      cursor.offset = offset;
    }
    wanting.push(cursor);
  }
}
