import type { SubscribedTopic } from '../../../protocol/frames.js';
import type { Position } from '../../../protocol/position.js';
import { matches } from '../../../protocol/topic.js';
import type { ModelStore } from './store.js';

/** Which promise was broken. */
export type ViolationKind =
  /** A stored message was stepped over without a word. */
  | 'missing'
  /** A message came that every subscription it is for had already. */
  | 'twice'
  /** A message came for a subscription that was not told where it starts. */
  | 'early'
  /** A message of another incarnation of the stream than the one the position names. */
  | 'epoch'
  /** `subscribed` with a position that was not asked for. */
  | 'moved'
  /** `recovered:false`, or a gap, where everything is there. */
  | 'needless'
  /** Something is owed and will never come. */
  | 'stuck'
  /** A channel, timer or fault that should not be. */
  | 'leak'
  | 'fault';

export interface Violation {
  readonly kind: ViolationKind;
  readonly detail: string;
}

/** What a client knows of one of its subscriptions. */
export interface Held {
  readonly filter: string;
  /** The newest request for it; undefined when it was named at the handshake. */
  req: number | undefined;
  /** The position that the request named. */
  asked: Position | undefined;
  /** What the client would come back with; undefined until it was told one. */
  position: Position | undefined;
  /** The newest request is answered. */
  answered: boolean;
  /** An earlier request of this connection may still be served. */
  served: boolean;
}

/** Judges what one client receives by the full log of the store, never by the state of a node. */
export class Oracle {
  readonly #store: ModelStore;
  readonly violations: Violation[] = [];

  constructor(store: ModelStore) {
    this.#store = store;
  }

  report(kind: ViolationKind, detail: string): void {
    this.violations.push({ kind, detail });
  }

  /** The client accepts a `subscribed`. */
  subscribed(held: Held, told: SubscribedTopic, unasked: boolean): void {
    if (!('epoch' in told)) return this.report('fault', `refused: ${JSON.stringify(told)}`);
    const { asked, filter } = held;
    const at = `${filter} told ${told.epoch}:${told.offset}, asked ${asked?.epoch}:${asked?.offset}`;
    if (told.offset > this.#store.lastOf(told.epoch)) this.report('moved', `${at}: beyond the end`);
    if (unasked) {
      if (told.recovered) this.report('moved', `${at}: a late answer after a newer one`);
    } else if (asked !== undefined && told.recovered) {
      if (told.epoch !== asked.epoch || told.offset !== asked.offset) this.report('moved', at);
    } else if (asked !== undefined && told.epoch === asked.epoch && told.epoch === this.#store.epoch) {
      // Of a stream that has been replaced nothing can be recovered, also before the node has been told so.
      const lost = this.#store.hasLost(asked.epoch, [filter], asked.offset, this.#store.lastOf(asked.epoch));
      if (!lost) this.report('needless', `${at}: nothing was lost, yet it is not recovered`);
    }
    held.position = { epoch: told.epoch, offset: told.offset };
    held.answered = true;
    held.served = true;
  }

  /** A message for a subscription that takes it. */
  message(held: Held, position: Position, offset: number, data: string): void {
    if (data !== `${position.epoch}:${offset}`) {
      this.report('epoch', `${held.filter} at ${position.epoch}:${position.offset} got ${data}`);
    }
    this.#stepOver(held, position, offset - 1, 'message');
    held.position = { epoch: position.epoch, offset };
  }

  /** A gap may cover what was dropped, and nothing that is there. */
  gap(held: Held, position: Position, from: number, to: number): void {
    this.#stepOver(held, position, from - 1, 'gap');
    const covered = this.#store.between(position.epoch, [held.filter], position.offset, to);
    if (covered.some((entry) => entry.droppedAt === Infinity)) {
      this.report(
        'needless',
        `${held.filter} at ${position.offset}: gap ${from}-${to} covers stored messages`,
      );
    }
    held.position = { epoch: position.epoch, offset: Math.max(position.offset, to) };
  }

  /** Everything up to a floor is said to have been sent. */
  floor(held: Held, floor: Position): void {
    const { position } = held;
    if (position === undefined || position.epoch !== floor.epoch || position.offset >= floor.offset) return;
    this.#stepOver(held, position, floor.offset, 'floor');
    held.position = floor;
  }

  /** At the end of a schedule nothing may be owed. */
  complete(held: Held): void {
    const { filter, position } = held;
    if (!held.answered || position === undefined) return this.report('stuck', `${filter} was never answered`);
    if (position.epoch !== this.#store.epoch) {
      return this.report('stuck', `${filter} is at ${position.epoch}, the stream at ${this.#store.epoch}`);
    }
    const owed = this.#store.between(position.epoch, [filter], position.offset, Infinity);
    if (owed.length > 0) {
      this.report('stuck', `${filter} at ${position.offset} is owed ${owed.map((e) => e.offset).join()}`);
    }
  }

  /** Nobody took a message: that is right only while an answer is under way. */
  unclaimed(topic: string, offset: number, held: readonly Held[], leaving: Iterable<string>): void {
    const at = `${topic}:${offset}`;
    const waiting = held.filter((h) => matches(h.filter, topic) && !h.answered);
    const isLeaving = [...leaving].some((filter) => matches(filter, topic));
    if (isLeaving || waiting.some((h) => h.served)) return;
    if (held.some((h) => h.answered && matches(h.filter, topic))) return this.report('twice', at);
    this.report('early', waiting.length > 0 ? at : `${at}: nobody subscribed to it`);
  }

  #stepOver({ filter }: Held, position: Position, to: number, by: string): void {
    const missed = this.#store.between(position.epoch, [filter], position.offset, to);
    if (missed.length === 0) return;
    const offsets = missed.map((entry) => entry.offset).join();
    this.report('missing', `${filter} at ${position.epoch}:${position.offset}: ${by} steps over ${offsets}`);
  }
}
