import type { ServerFrame, SubscribedTopic, TopicRequest } from '../../protocol/frames.js';
import { parsePosition } from '../../protocol/position.js';
import { matches, namespaceOf } from '../../protocol/topic.js';

type Message = Extract<ServerFrame, { type: 'msg' }>;

interface Held {
  readonly request: TopicRequest;
  /** Undefined on live topics, and until the first answer of the server. */
  epoch?: string;
  /** Everything up to here was received, or was reported as lost. */
  offset: number;
  /** The greatest floor of its namespace in this epoch. */
  floor: number;
  /** Answered by `subscribed` on this connection and not asked to resync since. */
  attached: boolean;
}

/** What an answer to a subscription means for a person. */
export type Attached = 'attached' | 'not-recovered' | 'refused';

/** Topics whose last offset is remembered, the least recently used going first. */
const seenMax = 10_000;

/**
 * Where the subscriptions of one client stand: what to ask for at the next connect, and which messages it has had
 * already. Pure bookkeeping, in the order in which frames arrive.
 */
export class Positions {
  private readonly held = new Map<string, Held>();
  /**
   * Topic → last offset received. A position says where a subscription began as well as what it received, so it
   * cannot tell whether another, overlapping subscription already brought a message; this can.
   */
  private readonly seen = new Map<string, number>();

  constructor(requests: readonly TopicRequest[]) {
    for (const request of requests) this.held.set(request.topic, held(request));
  }

  get size(): number {
    return this.held.size;
  }

  /** The connection is gone: floors count again only after the next `subscribed`. */
  detach(): void {
    for (const entry of this.held.values()) entry.attached = false;
  }

  /** The server wants these subscribed again. Returns what to ask for. */
  resync(topics: readonly string[]): TopicRequest[] {
    return topics.map((topic) => {
      const entry = this.held.get(topic);
      if (entry === undefined) return { topic };
      entry.attached = false;
      return resumeOf(entry);
    });
  }

  /** What to ask for at a connect: each with the greater of its own offset and its floor. */
  requests(): TopicRequest[] {
    return [...this.held.values()].map(resumeOf);
  }

  /** One answer of a `subscribed`. Topics that were not asked for (the token's own) are taken up. */
  subscribed(answer: SubscribedTopic): Attached {
    if ('error' in answer) {
      // Out of reach for now is not a refusal of the topic: it is asked for again.
      if (answer.error !== 'unavailable' && answer.error !== 'rate_limited') this.held.delete(answer.topic);
      return 'refused';
    }
    const entry = this.held.get(answer.topic) ?? held({ topic: answer.topic });
    this.held.set(answer.topic, entry);
    entry.attached = true;
    if (!('epoch' in answer)) return 'attached';
    const resumed = entry.epoch !== undefined;
    if (entry.epoch === answer.epoch && answer.recovered) {
      entry.offset = Math.max(entry.offset, answer.offset);
    } else {
      if (resumed && entry.epoch !== answer.epoch) this.seen.clear();
      entry.epoch = answer.epoch;
      entry.offset = answer.offset;
      entry.floor = answer.offset;
    }
    return resumed && !answer.recovered ? 'not-recovered' : 'attached';
  }

  drop(topic: string): void {
    this.held.delete(topic);
  }

  /**
   * Advances the positions by a message: that of the pattern it came for, or else of its topic; and that of the topic
   * too when it is held beside the pattern. Returns false for a message that was received before.
   */
  accept(message: Message): boolean {
    const { topic, offset, pattern } = message;
    if (offset === undefined) return true;
    const entry = this.held.get(pattern ?? topic);
    const fresh = offset > (this.seen.get(topic) ?? -1) && this.awaits(topic, offset);
    if (entry !== undefined) entry.offset = Math.max(entry.offset, offset);
    const exact = pattern === undefined ? undefined : this.held.get(topic);
    if (exact !== undefined) exact.offset = Math.max(exact.offset, offset);
    if (fresh) this.remember(topic, offset);
    return fresh;
  }

  /** Offsets up to `to` are lost for good: what follows is after them. */
  gap(topic: string, to: number): void {
    const entry = this.held.get(topic);
    if (entry !== undefined) entry.offset = Math.max(entry.offset, to);
  }

  /** The floors of a `pong`. They say nothing of subscriptions that wait for an answer or a resync. */
  floors(floors: Readonly<Record<string, string>>): void {
    for (const entry of this.held.values()) {
      const text = floors[namespaceOf(entry.request.topic)];
      if (text === undefined || !entry.attached) continue;
      const floor = parsePosition(text);
      if (floor.ok && floor.value.epoch === entry.epoch) {
        entry.floor = Math.max(entry.floor, floor.value.offset);
      }
    }
  }

  /**
   * Whether a subscription still lacks this offset. It need not be the one that the message came for: one server-side
   * subscription may serve several of ours that began at different places.
   */
  private awaits(topic: string, offset: number): boolean {
    let covered = false;
    for (const [filter, entry] of this.held) {
      if (!matches(filter, topic)) continue;
      if (entry.offset < offset) return true;
      covered = true;
    }
    return !covered;
  }

  private remember(topic: string, offset: number): void {
    this.seen.delete(topic);
    this.seen.set(topic, offset);
    if (this.seen.size <= seenMax) return;
    const oldest = this.seen.keys().next();
    if (!oldest.done) this.seen.delete(oldest.value);
  }
}

function held(request: TopicRequest): Held {
  const { epoch, offset } = request;
  return epoch === undefined || offset === undefined
    ? { request, offset: -1, floor: -1, attached: false }
    : { request, epoch, offset, floor: offset, attached: false };
}

function resumeOf(entry: Held): TopicRequest {
  if (entry.epoch === undefined) return entry.request;
  return { topic: entry.request.topic, epoch: entry.epoch, offset: Math.max(entry.offset, entry.floor) };
}
