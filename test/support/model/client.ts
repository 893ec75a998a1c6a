import type { ServerFrame, TopicRequest } from '../../../protocol/frames.js';
import { parsePosition, type Position } from '../../../protocol/position.js';
import { contains, matches } from '../../../protocol/topic.js';
import type { Random } from '../random.js';
import { namespace } from './bus.js';
import type { Link, ModelNode } from './node.js';
import type { Oracle, Held } from './oracle.js';
import type { WireFrame } from './socket.js';

interface WireMessage {
  readonly type: 'msg';
  readonly topic: string;
  readonly data: string;
  readonly offset: number;
}

type Received = Exclude<ServerFrame, { type: 'msg' }> | WireMessage;

/**
 * A client that keeps positions as the SDK does: one per subscription, moved by `subscribed`, `msg`, `gap` and the floors of `pong`,
 * and it comes back with them. What arrives while a request is unanswered does not count for it.
 */
export class ModelClient {
  readonly #oracle: Oracle;
  readonly #random: Random;
  readonly #kernelMax: number;
  readonly #bufferMax: number;
  readonly #held = new Map<string, Held>();
  /** Positions of what it has unsubscribed from, to come back with. */
  readonly #left = new Map<string, Position>();
  /** Unsubscribed, not yet confirmed. */
  readonly #leaving = new Map<number, readonly string[]>();
  #reqs = 0;
  #node: ModelNode | undefined;
  #link: Link | undefined;
  received = 0;

  constructor(oracle: Oracle, random: Random) {
    this.#oracle = oracle;
    this.#random = random;
    this.#kernelMax = 1 + random.int(12);
    // The answers of one resync have to fit, or it never ends: a real buffer holds thousands of them.
    this.#bufferMax = 6 + random.int(20);
  }

  get isConnected(): boolean {
    return this.#link !== undefined;
  }

  get isIdle(): boolean {
    if (this.#link === undefined) return true;
    const { frames, socket } = this.#link;
    return frames.length === 0 && socket.wire.length === 0 && !socket.hasBatch && socket.buffered() === 0;
  }

  connect(node: ModelNode): void {
    const topics: TopicRequest[] = [];
    for (const held of this.#held.values()) {
      held.served = false;
      topics.push(this.#ask(held, undefined, held.position));
    }
    this.#node = node;
    this.#link = node.connect(topics, this.#kernelMax, this.#bufferMax);
  }

  /** Goes away. @returns what the node has to find out by itself; what was on its way to the client is lost */
  disconnect(): Link | undefined {
    const link = this.#link;
    this.#link = undefined;
    this.#leaving.clear();
    return link;
  }

  subscribe(filters: readonly string[]): void {
    const req = ++this.#reqs;
    const topics = filters.map((filter) => {
      const held = this.#held.get(filter);
      if (held !== undefined) {
        // A request that is superseded before its answer came is served nevertheless, until the newer one is.
        held.served ||= !held.answered;
        return this.#ask(held, req, held.position);
      }
      const fresh: Held = {
        filter,
        req,
        asked: undefined,
        position: undefined,
        answered: false,
        served: false,
      };
      this.#held.set(filter, fresh);
      const kept = this.#random.int(2) === 0 ? undefined : this.#left.get(filter);
      const request = this.#ask(fresh, req, kept);
      return kept === undefined && this.#random.int(3) === 0
        ? { ...request, last: 1 + this.#random.int(4) }
        : request;
    });
    this.#link?.frames.push({ type: 'subscribe', req, topics });
  }

  unsubscribe(filter: string): void {
    const held = this.#held.get(filter);
    if (held === undefined || this.#link === undefined) return;
    this.#held.delete(filter);
    if (held.position !== undefined) this.#left.set(filter, held.position);
    const req = ++this.#reqs;
    this.#leaving.set(req, [filter]);
    this.#link.frames.push({ type: 'unsubscribe', req, topics: [filter] });
  }

  ping(): void {
    this.#link?.frames.push({ type: 'ping' });
  }

  /** The node receives the next frame of this client. */
  reachNode(): void {
    if (this.#link !== undefined) this.#node?.receive(this.#link);
  }

  /** Reads up to `count` frames of its socket. */
  read(count: number): void {
    const link = this.#link;
    if (link === undefined) return;
    for (const frame of link.socket.read(count)) this.#receive(decode(frame));
    if (link.socket.isClosed && link.socket.wire.length === 0) this.disconnect();
  }

  /** At the end of a schedule. */
  judge(): void {
    for (const held of this.#held.values()) this.#oracle.complete(held);
  }

  get filters(): readonly string[] {
    return [...this.#held.keys()];
  }

  #ask(held: Held, req: number | undefined, position: Position | undefined): TopicRequest {
    held.req = req;
    held.asked = position;
    held.position = position;
    held.answered = false;
    return { topic: held.filter, ...position };
  }

  #receive(frame: Received): void {
    this.received++;
    switch (frame.type) {
      case 'subscribed':
        return this.#onSubscribed(frame);
      case 'msg':
        return this.#onMessage(frame);
      case 'gap':
        return this.#onGap(frame.topic, frame.from, frame.to);
      case 'resync':
        return this.#onResync(frame.topics);
      case 'pong':
        return this.#onPong(frame.floors?.[namespace]);
      case 'unsubscribed':
        if (frame.req !== undefined) this.#leaving.delete(frame.req);
        return;
      default:
    }
  }

  #onSubscribed({ req, topics }: Extract<ServerFrame, { type: 'subscribed' }>): void {
    for (const told of topics) {
      const held = this.#held.get(told.topic);
      if (held === undefined) continue;
      if (!held.answered && held.req === req) this.#oracle.subscribed(held, told, false);
      else if (held.answered && req === undefined) this.#oracle.subscribed(held, told, true);
    }
  }

  #onMessage({ data, offset, topic }: WireMessage): void {
    let taken = false;
    for (const held of this.#held.values()) {
      const { position } = held;
      if (!held.answered || position === undefined || !matches(held.filter, topic)) continue;
      if (offset <= position.offset) continue;
      this.#oracle.message(held, position, offset, data);
      taken = true;
    }
    if (!taken) {
      this.#oracle.unclaimed(topic, offset, [...this.#held.values()], [...this.#leaving.values()].flat());
    }
  }

  /** The gap of a pattern is one of all subscriptions that it contains. */
  #onGap(filter: string, from: number, to: number): void {
    for (const held of this.#held.values()) {
      const { position } = held;
      if (!held.answered || position === undefined || !contains(filter, held.filter)) continue;
      if (to > position.offset) this.#oracle.gap(held, position, from, to);
    }
  }

  #onResync(topics: readonly string[]): void {
    const again = topics.filter((topic) => this.#held.has(topic));
    if (again.length > 0) this.subscribe(again);
  }

  #onPong(text: string | undefined): void {
    const floor = text === undefined ? undefined : parsePosition(text);
    if (floor?.ok !== true) return;
    for (const held of this.#held.values()) if (held.answered) this.#oracle.floor(held, floor.value);
  }
}

function decode(frame: WireFrame): Received {
  return (typeof frame === 'string' ? JSON.parse(frame) : frame) as Received;
}
