import type { ErrorCode } from '../protocol/codes.js';
import type { ClientFrame, SubscribedTopic } from '../protocol/frames.js';
import type { Position } from '../protocol/position.js';
import type { FrameOf } from './connection.js';
import { batches, topicsQuery } from './handshake.js';
import { Positions, type Cursor } from './positions.js';
import type { ClientEvents, Message } from './types.js';

/** One handler of one topic or pattern. */
export interface Reader extends Cursor {
  readonly handle: (message: Message) => void;
}

export interface SubscriptionsHost {
  send(frame: ClientFrame): boolean;
  nextReq(): number;
  /** Gets what comes for topics that nobody here has asked for. */
  readonly uncalledFor: (message: Message) => void;
  /** Positions have changed. */
  moved(): void;
  emit<K extends 'subscribed' | 'gap' | 'unrecovered' | 'refused'>(name: K, event: ClientEvents[K]): void;
}

/** Refusals that are about the moment, not about the topic. */
const temporary: ReadonlySet<ErrorCode> = new Set(['unavailable', 'rate_limited', 'internal']);
const retryMs = 2_000;

/** What the application listens to, kept in step with what the server sends. */
export class Subscriptions {
  readonly #host: SubscriptionsHost;
  readonly #positions = new Positions<Reader>();
  /** What this connection has been asked for and not told to end. */
  #asked = new Set<string>();
  /** What may have to be told to the server. Gathered for a moment: a page subscribes to many topics at once. */
  #dirty = new Set<string>();
  #flushing = false;
  #isOpen = false;
  /** Ends what the application has not asked for: topics of the token, and those that a back end subscribed. */
  readonly #uncalledFor = new Map<string, () => void>();
  #retry: ReturnType<typeof setTimeout> | undefined;

  constructor(host: SubscriptionsHost) {
    this.#host = host;
  }

  /** @returns ends it; later calls do nothing */
  add(filter: string, handle: (message: Message) => void, last?: number): () => void {
    const reader: Reader = { handle, offset: undefined, floor: -1 };
    if (this.#positions.add(filter, reader, last)) {
      // Also when it was asked for before: naming it again starts it over, as this reader wants it.
      this.#asked.delete(filter);
      this.#changed(filter);
    }
    return () => {
      if (this.#positions.remove(filter, reader)) this.#changed(filter);
    };
  }

  restore(stored: ReadonlyMap<string, Position>): void {
    this.#positions.restore(stored);
  }

  stored(): Record<string, string> {
    return this.#positions.stored();
  }

  /** The topics of a handshake: all that fit. The rest is asked for after `welcome`. */
  handshake(token: string | undefined): string {
    this.detach();
    const filters = this.#positions.filters();
    const requests = filters.map((filter) => this.#positions.request(filter));
    // The query has no place for `last`.
    const inQuery = requests.filter((request) => request.last === undefined);
    const query = topicsQuery(inQuery, token);
    for (const filter of filters) this.#positions.asked(filter, undefined);
    this.#asked = new Set(query === undefined ? [] : inQuery.map(({ topic }) => topic));
    this.#dirty = new Set(filters);
    return query ?? '';
  }

  opened(): void {
    this.#isOpen = true;
    this.flush();
  }

  /** The connection is gone. */
  detach(): void {
    this.#isOpen = false;
    clearTimeout(this.#retry);
    this.#retry = undefined;
    this.#positions.detach();
    this.#asked.clear();
  }

  /** Tells the server what has changed. */
  flush(): void {
    this.#flushing = false;
    if (!this.#isOpen) return;
    const dirty = [...this.#dirty];
    this.#dirty.clear();
    this.#subscribe(dirty.filter((f) => this.#positions.has(f) && !this.#asked.has(f)));
    const ended = dirty.filter((f) => !this.#positions.has(f) && this.#asked.has(f));
    for (const topics of batches(ended)) {
      this.#host.send({ type: 'unsubscribe', req: this.#host.nextReq(), topics });
      for (const filter of topics) this.#asked.delete(filter);
    }
  }

  message({ topic, offset }: FrameOf<'msg'>, data: unknown): void {
    const readers = this.#positions.accept(topic, offset);
    const message: Message = offset === undefined ? { topic, data } : { topic, data, offset };
    for (const reader of readers) reader.handle(message);
    if (offset !== undefined && readers.length > 0) this.#host.moved();
  }

  subscribed({ req, topics }: FrameOf<'subscribed'>): void {
    const again: string[] = [];
    for (const answer of topics) {
      if ('error' in answer) this.#refused(answer.topic, answer.error, req);
      else if (this.#granted(answer, req)) again.push(answer.topic);
    }
    this.#subscribe(again);
    this.#host.moved();
  }

  /** Asked for: nothing to do. Unasked: a grant has ended, or a back end has ended it. */
  unsubscribed({ req, topics, reason }: FrameOf<'unsubscribed'>): void {
    if (req !== undefined) return;
    for (const topic of topics) {
      this.#asked.delete(topic);
      this.#positions.release(topic);
      this.#forget(topic);
      this.#host.emit('refused', {
        topic,
        code: 'forbidden',
        final: true,
        ...(reason !== undefined && { reason }),
      });
    }
  }

  gap({ topic, from, to }: FrameOf<'gap'>): void {
    this.#positions.gap(topic, to);
    this.#host.emit('gap', { topic, from, to });
    this.#host.moved();
  }

  resync({ topics }: FrameOf<'resync'>): void {
    for (const topic of topics) {
      this.#asked.delete(topic);
      // What comes before the answer may be of a request that this one replaces, and begin later.
      this.#positions.release(topic);
    }
    this.#subscribe(topics.filter((topic) => this.#positions.has(topic)));
  }

  floors({ floors }: FrameOf<'pong'>): void {
    if (floors === undefined) return;
    this.#positions.floors(floors);
    this.#host.moved();
  }

  /** A request was refused as a whole: for the moment, since it was well-formed. @returns whether it was one for topics */
  failed(req: number): boolean {
    const filters = this.#positions.askedBy(req);
    for (const filter of filters) {
      this.#positions.refused(filter);
      this.#askLater(filter);
    }
    return filters.length > 0;
  }

  /** @returns whether it has to be asked for once more */
  #granted(answer: Exclude<SubscribedTopic, { error: unknown }>, req: number | undefined): boolean {
    const { topic } = answer;
    // The token's own topics, and what a back end subscribes.
    if (req === undefined && !this.#positions.has(topic) && !this.#asked.has(topic)) {
      this.#uncalledFor.set(topic, this.add(topic, this.#host.uncalledFor));
      // It is subscribed already.
      this.#asked.add(topic);
    }
    const outcome = this.#positions.subscribed(answer, req);
    if (outcome === 'unrecovered') this.#host.emit('unrecovered', { topic });
    if (outcome === 'attached' || outcome === 'unrecovered') {
      const place = 'epoch' in answer ? { epoch: answer.epoch, offset: answer.offset } : {};
      this.#host.emit('subscribed', { topic, ...place });
    }
    return outcome === 'again';
  }

  #refused(topic: string, code: ErrorCode, req: number | undefined): void {
    if (!this.#positions.has(topic) || !this.#positions.isCurrent(topic, req)) return;
    this.#positions.refused(topic);
    const final = !temporary.has(code);
    if (final) this.#forget(topic);
    else this.#askLater(topic);
    this.#host.emit('refused', { topic, code, final });
  }

  #askLater(filter: string): void {
    this.#asked.delete(filter);
    this.#dirty.add(filter);
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined;
      this.flush();
    }, retryMs);
  }

  #forget(topic: string): void {
    this.#uncalledFor.get(topic)?.();
    this.#uncalledFor.delete(topic);
  }

  #changed(filter: string): void {
    this.#dirty.add(filter);
    if (this.#flushing) return;
    this.#flushing = true;
    void Promise.resolve().then(() => this.flush());
  }

  #subscribe(filters: readonly string[]): void {
    for (const topics of batches(filters.map((filter) => this.#positions.request(filter)))) {
      const req = this.#host.nextReq();
      for (const { topic } of topics) {
        this.#positions.asked(topic, req);
        this.#asked.add(topic);
      }
      this.#host.send({ type: 'subscribe', req, topics });
    }
  }
}
