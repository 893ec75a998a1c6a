import type { HistoryPage, OpenedHead, StoredMessage } from '../broker/bus.js';
import { isPattern, matches } from '../protocol/topic.js';
import type { Position } from '../protocol/position.js';
import { HistoryReader } from './history-reader.js';
import { ChannelMessage } from './message.js';
import { pageItems } from './page-items.js';
import { Ring } from './ring.js';

/** What leaves a feed for the sessions that are attached to it, in order. */
export type FeedItem =
  | { readonly kind: 'message'; readonly message: ChannelMessage }
  /** Offsets lost for good. What follows is after `to`. */
  | { readonly kind: 'gap'; readonly from: number; readonly to: number };

/** Whose feed it is. An object and no bundle of functions, since a node has very many of them. */
export interface FeedHost {
  readonly filters: readonly string[];
  readonly ringMessages: number;
  readonly ringBytes: number;
  /** The slice of the bus that repairs and replays read. */
  readHistory(after: number, limit: number, from: number): Promise<HistoryPage>;
  /** Called when something is held and a flush is due soon. */
  scheduleFlush(): void;
  /** Hands what was held to the attached sessions; synchronous. */
  publish(items: readonly FeedItem[]): void;
  /** Waits before a failed repair is tried again. */
  retryLater(attempt: number, again: () => void): void;
  onRepaired(messages: number, lost: boolean): void;
}

/**
 * The node's copy of one durable channel: checks that nothing is missing, repairs what is, remembers the newest in a ring, and
 * holds messages back for a moment so that a burst leaves as one write per socket.
 * The order of events is the state machine of `docs/architecture.md`; `test/property/feed-model.test.ts` checks it.
 */
export class Feed {
  readonly ring: Ring;
  readonly #host: FeedHost;
  /** Made with the first read. */
  #reader: HistoryReader | undefined;
  #epoch = '';
  #last = 0;
  /** The newest message of the channel (or the end of a gap): between it and `last` there are only messages of others. */
  #newest = 0;
  // Lists that are mostly empty are not there then.
  #held: FeedItem[] | undefined;
  /** Messages that came while the head was unknown or a repair was under way. */
  #parked: StoredMessage[] | undefined;
  /** Offset up to which a running repair has to read; -1 when there is none. */
  #repairTo = -1;
  #started = false;
  #waiters: (() => void)[] | undefined;
  #closed = false;

  constructor(host: FeedHost) {
    this.#host = host;
    this.ring = new Ring(host.ringMessages, host.ringBytes);
  }

  get epoch(): string {
    return this.#epoch;
  }

  /** The newest offset that this node has accepted; all up to it is in order and without a gap that was not declared. */
  get last(): number {
    return this.#last;
  }

  get repairing(): boolean {
    return this.#repairTo >= 0;
  }

  /** Whether it is an exact topic, not a pattern or several of them. */
  get isOneTopic(): boolean {
    const [first, second] = this.#host.filters;
    return first !== undefined && second === undefined && !isPattern(first);
  }

  /** The head is known: from here on everything is delivered or shows as a break. */
  start(head: OpenedHead): void {
    if (!this.#started) return this.#startAt(head);
    // The stream was replaced while the channel was being opened, so it stands in the new one already: only what came before it was
    // really listened to can be missing. The head of an older stream says nothing.
    if (head.epoch === this.#epoch) this.repair(head.offset);
  }

  /** The stream was replaced: nothing of the old one counts any more. */
  restart(head: Position): void {
    this.flush();
    this.ring.clear();
    this.#reader?.forget();
    this.#parked = undefined;
    this.#repairTo = -1;
    // Which of its messages are of this channel is not known yet.
    this.#startAt({ ...head, newest: head.offset });
    this.#wake();
  }

  close(): void {
    this.#closed = true;
    this.#reader?.forget();
    this.#held = undefined;
    this.#parked = undefined;
    this.#wake();
  }

  /** A message from the bus. */
  receive(message: StoredMessage): void {
    if (this.#closed) return;
    if (!this.#started || this.repairing) {
      this.#park(message);
    } else if (message.offset > this.#last) {
      if (message.prev > this.#last) {
        this.#park(message);
        this.repair(message.prev);
      } else {
        this.#accept(message);
      }
    }
  }

  /** A stored body that cannot be read: nobody gets it, but nothing is missing at its place. */
  skip(place: Omit<StoredMessage, 'payload'>): void {
    if (this.#closed || !this.#started || this.repairing || place.offset <= this.#last) return;
    if (place.prev > this.#last) this.repair(place.prev);
    else this.#last = place.offset;
  }

  /** Reads from the stream what is missing up to `to`; one repair at a time, a later call extends a running one. */
  repair(to: number): void {
    if (this.#closed || !this.#started || to <= this.#last) return;
    const running = this.repairing;
    this.#repairTo = Math.max(this.#repairTo, to);
    if (!running) this.#readMissing(0, 0);
  }

  /**
   * Everything of the channel up to `floor` is known to have been received, so a client that knows this floor is not ahead of the feed.
   * Without effect while something is missing.
   */
  advance(floor: Position): void {
    if (this.#started && !this.repairing && floor.epoch === this.#epoch && floor.offset > this.#last) {
      this.#last = floor.offset;
    }
  }

  /** Resolves when `last` has reached an offset that the stream holds, the stream was replaced, or the feed was closed. */
  async reached(offset: number): Promise<void> {
    const epoch = this.#epoch;
    while (this.#last < offset && !this.#closed && epoch === this.#epoch) {
      this.repair(offset);
      await new Promise<void>((resolve) => (this.#waiters ??= []).push(resolve));
    }
  }

  /** Hands over what is held. */
  flush(): void {
    const items = this.#held;
    if (items === undefined) return;
    this.#held = undefined;
    this.#host.publish(items);
  }

  /** Whether everything after `offset` is in the ring, so that a session there can go live in this very tick. */
  covers(offset: number): boolean {
    const oldest = this.ring.oldest;
    // Whoever has the newest message has missed nothing, however far the stream has come with messages of others.
    return offset >= this.#newest || (oldest !== undefined && oldest.prev <= offset);
  }

  /** A page of the channel's history after `after`; see `HistoryReader.read`. @throws what the bus throws */
  read(after: number): Promise<HistoryPage> {
    this.#reader ??= new HistoryReader(this.#host);
    return this.#reader.read(after);
  }

  /** Wraps a message read from history, which is not part of the ring. */
  wrap(message: StoredMessage): ChannelMessage {
    return new ChannelMessage(message, message.prev, this.#patternOf(message.topic));
  }

  #startAt(head: OpenedHead): void {
    this.#epoch = head.epoch;
    this.#last = head.offset;
    this.#newest = head.newest;
    this.#started = true;
    this.#drainParked();
  }

  #accept(message: StoredMessage): void {
    // The chain of the ring is what this feed accepted, not `message.prev`: that one is 0 when the stream forgot it.
    const accepted = new ChannelMessage(message, this.#newest, this.#patternOf(message.topic));
    this.#last = message.offset;
    this.#newest = message.offset;
    this.ring.push(accepted);
    this.#hold({ kind: 'message', message: accepted });
  }

  #declareGap(to: number): void {
    if (to <= this.#last) return;
    this.#hold({ kind: 'gap', from: this.#last + 1, to });
    this.#last = to;
    this.#newest = to;
    // A session from before the gap must not step over it on ring entries: it has to ask the stream and be told.
    this.ring.clear();
  }

  #hold(item: FeedItem): void {
    if (this.#held !== undefined) {
      this.#held.push(item);
      return;
    }
    this.#held = [item];
    this.#host.scheduleFlush();
  }

  /** Bounded: what does not fit is dropped, and the repair that follows reads it from the stream. */
  #park(message: StoredMessage): void {
    if (this.#parked !== undefined && this.#parked.length >= this.#host.ringMessages) {
      for (const parked of this.#parked) this.#repairTo = Math.max(this.#repairTo, parked.offset);
      this.#parked = undefined;
    }
    (this.#parked ??= []).push(message);
  }

  #readMissing(attempt: number, repaired: number): void {
    const isStale = this.#staleness();
    this.read(this.#last).then(
      (page) => {
        if (!isStale()) this.#fill(page, attempt, repaired);
      },
      () => {
        if (!isStale()) this.#retryRepair(attempt, repaired);
      },
    );
  }

  #retryRepair(attempt: number, repaired: number): void {
    const isStale = this.#staleness();
    this.#host.retryLater(attempt, () => {
      if (!isStale()) this.#readMissing(attempt + 1, repaired);
    });
  }

  /** Asks later whether the repair that runs now is over: what it still waits for may come when another one, of a new stream, runs. */
  #staleness(): () => boolean {
    const epoch = this.#epoch;
    return () => this.#closed || !this.repairing || this.#epoch !== epoch;
  }

  #fill(page: HistoryPage, attempt: number, before: number): void {
    // Another incarnation: `restart` is on its way and ends this repair.
    if (page.epoch !== this.#epoch) return this.#retryRepair(attempt, before);
    const start = this.#last;
    let repaired = before;
    for (const item of pageItems(page, start, this.#repairTo, this.isOneTopic)) {
      if (item.kind === 'gap') {
        this.#declareGap(item.to);
      } else {
        this.#accept(item.message);
        repaired++;
      }
    }
    this.#last = Math.max(this.#last, Math.min(page.upTo, this.#repairTo));
    if (this.#last >= this.#repairTo) this.#finishRepair(repaired, !page.complete);
    else if (this.#last > start) this.#readMissing(0, repaired);
    // The read was older than what has to be reached (a replica that lags): it will catch up.
    else this.#retryRepair(attempt, repaired);
  }

  #finishRepair(messages: number, lost: boolean): void {
    this.#repairTo = -1;
    this.#host.onRepaired(messages, lost);
    this.#drainParked();
    this.#wake();
  }

  /** A parked message may show another break: then `receive` starts the next repair and parks the rest again. */
  #drainParked(): void {
    if (this.#repairTo >= 0) {
      // Some did not fit while the head was unknown.
      const to = this.#repairTo;
      this.#repairTo = -1;
      if (to > this.#last) return this.repair(to);
    }
    const parked = this.#parked;
    this.#parked = undefined;
    for (const message of parked ?? []) this.receive(message);
  }

  #wake(): void {
    const waiters = this.#waiters;
    this.#waiters = undefined;
    for (const wake of waiters ?? []) wake();
  }

  #patternOf(topic: string): string | undefined {
    const [only] = this.#host.filters;
    if (this.#host.filters.length === 1) return only !== undefined && isPattern(only) ? only : undefined;
    return this.#host.filters.find((filter) => matches(filter, topic));
  }
}
