import type { HistoryPage } from '../broker/bus.js';
import type { SubscribedTopic, TopicRequest } from '../protocol/frames.js';
import type { Position } from '../protocol/position.js';
import { matches } from '../protocol/topic.js';
import type { Channel } from './channel.js';
import type { Feed } from './feed.js';
import type { ChannelMessage } from './message.js';
import type { Outlet, SendStatus } from './outlet.js';
import { pageItems } from './page-items.js';
import type { SubscribeAnswer } from './subscribe-answer.js';

/** One subscription of a session, as a member of the channel that serves it. */
export interface Member {
  /** The topic or pattern that the client named. */
  readonly filter: string;
  /** What the session has been sent up to; undefined until the request is resolved. Live topics keep 0. */
  cursor: number | undefined;
  /** What the client asked for; undefined once it was told what became of it: sessions live long, and there are very many of them. */
  pending: PendingRequest | undefined;
}

export interface PendingRequest {
  readonly request: TopicRequest;
  /** Collects what became of it, until that is told. */
  readonly answer: SubscribeAnswer;
  /** Resolves when that has been told; undefined before the request is resolved. */
  told: Promise<void> | undefined;
}

/** The slice of a session that an attachment needs. */
export interface AttachmentHost {
  readonly outlet: Outlet;
  /** Resolves when what waits for the socket has been written, or the session has ended. */
  drained(): Promise<void>;
  /** Something was not accepted by the socket: the session detaches everything and resyncs. */
  onDropped(): void;
  /** The reader is slower than the topic for good. */
  onHopeless(): void;
}

/** Reads in a row without getting nearer to the head, after which a replay is given up. */
const stalledReadsMax = 20;

/**
 * A session on a channel: replays what the session has not seen, then goes live in the same tick, so that nothing is missing
 * and nothing comes twice. An attachment runs once; to move a session, `end` it and make another from its members.
 */
export class Attachment {
  readonly channel: Channel;
  readonly members: readonly Member[];
  readonly #host: AttachmentHost;
  #state: 'starting' | 'live' | 'ended' = 'starting';
  /** A page that resolving read and that the replay can begin with. */
  #page: HistoryPage | undefined;

  constructor(channel: Channel, members: readonly Member[], host: AttachmentHost) {
    this.channel = channel;
    this.members = members;
    this.#host = host;
  }

  get live(): boolean {
    return this.#state === 'live';
  }

  /** A method, because it changes while others are awaited. */
  ended(): boolean {
    return this.#state === 'ended';
  }

  /**
   * Leaves the channel. What was accepted before is sent first; afterwards every member's cursor says what the session has.
   * Not to be called from a drop: then nothing can be sent any more (`abandon`).
   */
  end(): void {
    if (this.#state === 'live') {
      this.channel.flush();
      const last = this.channel.feed?.last ?? 0;
      for (const member of this.members) member.cursor = last;
    }
    this.abandon();
  }

  /** Leaves at once; cursors are void. */
  abandon(): void {
    if (this.#state === 'live') this.#host.outlet.leave(this.channel);
    this.#state = 'ended';
  }

  /** The channel's stream was replaced: what is resolved goes on at the new head, and the client is told. */
  restart(head: Position): SubscribedTopic[] {
    this.#page = undefined;
    const resolved = this.members.filter((m) => m.cursor !== undefined);
    for (const member of resolved) member.cursor = head.offset;
    return resolved
      .map((m) => ({ member: m, outcome: { topic: m.filter, ...head, recovered: false } }))
      .filter(({ member, outcome }) => member.pending?.answer.replace(outcome) !== true)
      .map(({ outcome }) => outcome);
  }

  /** Settles where each new member starts, answers, replays and goes live. Waits for the channel to be open, however long that takes. */
  async start(): Promise<void> {
    if (!this.channel.isOpen) await this.channel.whenOpen();
    for (const member of this.members) {
      if (this.ended()) return;
      if (member.cursor !== undefined) continue;
      await this.#resolve(member);
    }
    // Also of members that an earlier attachment resolved: its end does not wait for them to be told.
    await Promise.all(this.members.flatMap((m) => m.pending?.told ?? []));
    await this.#replayToLive();
  }

  /** Without effect when the attachment ended meanwhile: the member has another one that answers for it, or is gone. */
  async #resolve(member: Member): Promise<void> {
    const feed = this.channel.feed;
    if (feed === undefined) return this.#settle(member, 0, { topic: member.filter });
    const { epoch } = feed;
    const located = await this.#locate(feed, member);
    if (this.ended()) return;
    // An offset that was found in a stream that has been replaced since means nothing in the new one.
    const found = feed.epoch === epoch ? located : undefined;
    const offset = found ?? feed.last;
    const recovered = found !== undefined;
    this.#settle(member, offset, { topic: member.filter, epoch: feed.epoch, offset, recovered });
  }

  /** In one step, or a new stream in between would be told first. */
  #settle(member: Member, cursor: number, outcome: SubscribedTopic): void {
    member.cursor = cursor;
    const { pending } = member;
    if (pending === undefined) return;
    pending.told = pending.answer.add(outcome);
    void pending.told.then(() => (member.pending = undefined));
  }

  async #replayToLive(): Promise<void> {
    const { channel } = this;
    let stalls = 0;
    while (!this.ended()) {
      const feed = channel.feed;
      if (feed === undefined) return this.#join();
      // Coming from a channel that is ahead of this one: what it has been sent already would come again.
      await feed.reached(Math.max(...this.#cursors()));
      if (this.ended()) return;
      const position = Math.min(...this.#cursors());
      if (feed.covers(position)) {
        // Held messages go to those who are attached already; this session gets them from the ring.
        feed.flush();
        if (this.#send(feed.ring.after(position))) {
          this.#advance(feed.last);
          return this.#join();
        }
      } else {
        const { epoch } = feed;
        const page = this.#page ?? (await this.#read(() => feed.read(position)));
        this.#page = undefined;
        if (page === undefined || this.ended()) return;
        // Asked for a position of the stream that has been replaced since, it leaves out what the new one holds before that.
        if (feed.epoch !== epoch) continue;
        this.#replay(feed, page, position);
        stalls = Math.min(...this.#cursors()) > position ? 0 : stalls + 1;
        if (stalls > stalledReadsMax) return this.#host.onHopeless();
      }
      if (!this.ended()) await this.#host.drained();
    }
  }

  /** The offset that the member starts after; undefined when its position cannot be recovered. */
  async #locate(feed: Feed, { filter, pending }: Member): Promise<number | undefined> {
    if (pending === undefined) return undefined;
    const { request } = pending;
    if (request.offset === undefined) {
      // A bus that is asked for the last none answers with one.
      const { last = 0 } = request;
      return last === 0 ? feed.last : this.#locateLast(feed, filter, last);
    }
    const { epoch, offset } = request;
    if (epoch !== feed.epoch) return undefined;
    if (offset > feed.last && !(await this.#reach(feed, epoch, offset))) return undefined;
    if (feed.covers(offset)) return offset;
    if (this.members.length > 1) {
      const recoverable = await this.#read(() => this.channel.source.recoverable([filter], offset));
      return recoverable === true ? offset : undefined;
    }
    const page = await this.#read(() => feed.read(offset));
    if (page?.complete !== true || page.epoch !== epoch) return undefined;
    this.#page = page;
    return offset;
  }

  /** A client may be ahead of this node: it knows a floor, or comes from a node that is faster. */
  async #reach(feed: Feed, epoch: string, offset: number): Promise<boolean> {
    const floor = this.channel.source.floor(this.channel.namespace);
    if (floor !== undefined) feed.advance(floor);
    if (offset <= feed.last) return true;
    const head = await this.#read(() => this.channel.source.head(this.channel.filters));
    // The feed may have gone over to a new stream meanwhile, which need not ever get that far.
    if (head?.epoch !== epoch || feed.epoch !== epoch || offset > head.offset) return false;
    await feed.reached(offset);
    return !this.ended();
  }

  async #locateLast(feed: Feed, filter: string, count: number): Promise<number> {
    const page = await this.#read(() => this.channel.source.latest([filter], count));
    const first = page?.messages[0];
    if (first === undefined || page?.epoch !== feed.epoch || first.offset > feed.last) return feed.last;
    return first.offset - 1;
  }

  /** Asks the bus until it answers; undefined when the attachment ended before. */
  async #read<T>(ask: () => Promise<T>): Promise<T | undefined> {
    for (let attempt = 0; !this.ended(); attempt++) {
      try {
        return await ask();
      } catch (error) {
        this.channel.source.onReadFailed(error);
        await this.channel.source.backoff(attempt);
      }
    }
    return undefined;
  }

  /** Sends the part of a page that this node has seen live: the rest will come through the feed. */
  #replay(feed: Feed, page: HistoryPage, position: number): void {
    if (page.epoch !== feed.epoch) return;
    const upTo = Math.min(page.upTo, feed.last);
    const items = pageItems(page, position, upTo, feed.isOneTopic);
    if (this.#send(items.map((item) => (item.kind === 'gap' ? item.to : feed.wrap(item.message))))) {
      this.#advance(upTo);
    }
  }

  #sendGap(to: number): SendStatus {
    let status: SendStatus = 'sent';
    // The gap of a pattern counts for the subscriptions in it too, so those that are further back are told theirs first.
    for (const member of [...this.members].sort((a, b) => (a.cursor ?? 0) - (b.cursor ?? 0))) {
      const from = (member.cursor ?? 0) + 1;
      if (from > to || status === 'dropped') continue;
      status = this.#host.outlet.send({ type: 'gap', topic: member.filter, from, to });
    }
    return status;
  }

  /**
   * Sends messages, and gaps up to an offset, in order until the socket pushes back.
   * @returns whether all were sent and the attachment still stands
   */
  #send(items: Iterable<ChannelMessage | number>): boolean {
    // Replays of other channels fill the same buffer: each on its own would overflow it for ever, resync after resync.
    let status: SendStatus = this.#host.outlet.buffered() > 0 ? 'buffered' : 'sent';
    for (const item of items) {
      if (status === 'buffered') return false;
      if (typeof item === 'number') status = this.#sendGap(item);
      else if (this.#wants(item)) status = this.#host.outlet.deliver(item);
      if (status === 'dropped') this.#host.onDropped();
      if (status === 'dropped' || this.ended()) return false;
      this.#advance(typeof item === 'number' ? item : item.offset);
    }
    return true;
  }

  #wants(message: ChannelMessage): boolean {
    return this.members.some((m) => (m.cursor ?? 0) < message.offset && matches(m.filter, message.topic));
  }

  #advance(to: number): void {
    for (const member of this.members) member.cursor = Math.max(member.cursor ?? 0, to);
  }

  #cursors(): number[] {
    return this.members.map((m) => m.cursor ?? 0);
  }

  #join(): void {
    this.#host.outlet.join(this.channel);
    this.#state = 'live';
  }
}
