import type { Payload } from '../protocol/payload.js';
import type { Position } from '../protocol/position.js';

/**
 * What a node needs of the cluster for topic traffic. Two engines: memory (`bus-memory.ts`) and NATS.
 * An engine speaks through the handler it is started with and knows nothing of sessions or sockets.
 */
export interface TopicBus {
  /**
   * Connects and makes sure that the streams of durable namespaces exist.
   * @throws BrokerError `unavailable`
   */
  start(handler: BusHandler): Promise<void>;

  /**
   * Declares that this node hosts `interest`. Messages for it reach the handler from now on, also before the promise settles.
   *
   * Durable: resolves with the head: the stream's last position at that moment, on the authority of its leader (not only that of
   * the interest, so that a client of a quiet topic which knows a later floor is not ahead of it). Every message of the interest stored after it is delivered or, if
   * the engine loses it, shows as a break in `prev` (see `StoredMessage`). Live: resolves with `undefined`.
   *
   * Never answers with an epoch that the handler has not had by `onEpoch`, but for the one that stood at `start`.
   *
   * Opening a key that is open already is a fault of the caller. Rejects with `unavailable` when the cluster is
   * away; the interest is then not open.
   */
  open(interest: Interest): Promise<OpenedHead | undefined>;

  /** Ends the interest. No handler call for it happens after this returns. Unknown keys are ignored. */
  close(key: string): void;

  /**
   * Publishes one message. Durable: resolves once it is stored, with its place; with `id`, a second publish with
   * the same publisher, topic and id within two minutes resolves with the first one's place and `duplicate`. Live: resolves with
   * `undefined` as soon as the message was handed over.
   * @throws BrokerError `unavailable`: it may or may not have been stored; retry with the same id.
   */
  publish(message: OutgoingMessage): Promise<Published | undefined>;

  /**
   * Publishes several messages, handed over together: the order within a topic is theirs. Settles when the outcome of each is known, in their
   * order: what `publish` would have answered, or the error that it would have thrown. For many it is much cheaper than `publish`.
   */
  publishAll(messages: readonly OutgoingMessage[]): Promise<readonly PublishOutcome[]>;

  /**
   * Stored messages of an interest with `offset > after`, in order, oldest first: a page of at most `limit` messages and about
   * `historyPageBytesMax` bytes, at least one message if there is any. `after` = 0 reads from the oldest.
   * @param from begins after this smaller offset instead, so that the page serves others too; the page may end before `after` then
   * @throws BrokerError `unavailable`
   */
  history(filters: readonly string[], after: number, limit: number, from?: number): Promise<HistoryPage>;

  /**
   * The last `count` stored messages of an interest, in order.
   * @throws BrokerError `unavailable`
   */
  latest(filters: readonly string[], count: number): Promise<HistoryPage>;

  /**
   * Whether nothing that was stored after `offset` for the interest has been dropped (by age, count or purge), so that
   * a client at that offset can be brought up to date. True for a topic that was merely quiet.
   * @throws BrokerError `unavailable`
   */
  recoverable(filters: readonly string[], offset: number): Promise<boolean>;

  /** The head as `open` answers it. @throws BrokerError `unavailable` */
  head(filters: readonly string[]): Promise<OpenedHead>;

  /**
   * The offset of a durable namespace up to which this node has certainly been handed everything that it hosts;
   * undefined when the namespace is not durable or this is not known yet. Cheap: reads memory.
   */
  floor(namespace: string): Position | undefined;

  /** False while the cluster is out of reach: publishes would be refused. */
  readonly connected: boolean;

  /** Closes every interest and leaves the cluster. Publishes in flight settle first. */
  stop(): Promise<void>;
}

/**
 * One thing that a node listens to: an exact topic, a pattern, or several patterns of one namespace that overlap and are
 * therefore read as one ordered sequence, in which a message that several match comes once.
 */
export interface Interest {
  /** Names it in handler calls; unique among the open ones of a node. */
  readonly key: string;
  /** Topics or patterns, all of one namespace, at least one. */
  readonly filters: readonly string[];
}

/** The head of a stream as seen from one interest. */
export interface OpenedHead extends Position {
  /** The offset of the newest stored message of the interest, not greater than `offset`; 0 when there is none. Nothing of it lies between the two. */
  readonly newest: number;
}

/** Where an engine delivers. Calls are synchronous; an engine never calls back into itself from them. */
export interface BusHandler {
  /** A live message: at most once, in the publisher's order. */
  onLive(key: string, message: LiveMessage): void;
  /** A stored message of a durable interest, normally in order; the receiver checks `prev`. */
  onStored(key: string, message: StoredMessage): void;
  /** The stream of a namespace was replaced (a new epoch): offsets start over at `head`. */
  onEpoch(namespace: string, head: Position): void;
  /**
   * The stream holds a message of the interest at this offset that should have been delivered by now, but was not: it was lost on the way. The
   * receiver reads what it is missing.
   */
  onBehind(key: string, offset: number): void;
  /**
   * Somebody published a body that cannot be read. It reaches nobody, but its place in the order counts (both offsets 0 on live topics).
   */
  onUnparsable(key: string, place: Omit<StoredMessage, 'payload'>, reason: string): void;
  /** The cluster was lost or is back. What was missed meanwhile is told by `onBehind`. */
  onConnected(connected: boolean): void;
}

export interface LiveMessage {
  readonly topic: string;
  readonly payload: Payload;
}

export interface StoredMessage extends LiveMessage {
  /** Stream sequence: increasing within a namespace. */
  readonly offset: number;
  /**
   * The offset of the message before this one in the same interest. 0: there is none, or it is not known any more.
   * A receiver whose last offset is smaller has missed something.
   */
  readonly prev: number;
}

export interface OutgoingMessage extends LiveMessage {
  /** Who publishes (a user id, or a name for a service): makes `id` unique to them. */
  readonly publisher: string;
  readonly id?: string;
}

export interface Published extends Position {
  readonly duplicate: boolean;
}

export type PublishOutcome = Published | undefined | Error;

export interface HistoryPage {
  readonly epoch: string;
  readonly messages: readonly StoredMessage[];
  /** Whether more follow. */
  readonly more: boolean;
  /** Nothing of the interest that was stored after the asked offset has been dropped: what `recoverable` answers for it. */
  readonly complete: boolean;
  /** The same holds for each offset from here on, up to the end of the page. Infinity: for none that is known. */
  readonly completeAfter: number;
  /** After each offset up to here something has been dropped, as far as can be told. What lies between this and `completeAfter` is not known. -1: none. */
  readonly lostUpTo: number;
  /**
   * The page is the truth up to here: each stored message of the interest after the offset where it begins and up to `upTo` is in it. Without `more` this is
   * the stream's last offset when it was read, so a caller that needs newer ones knows that it has to read again.
   */
  readonly upTo: number;
}

/** Bytes of payload after which a history page ends. */
export const historyPageBytesMax = 1024 * 1024;
/** Messages a history page holds at most. */
export const historyPageMessagesMax = 1000;
/** How long a message id is remembered. */
export const deduplicationMs = 120_000;
