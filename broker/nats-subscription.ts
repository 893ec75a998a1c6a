import type { Msg, NatsConnection } from 'nats';

/** Whoever holds many subscriptions and tells them apart by a key. */
export interface SubscriptionOwner {
  onMessage(key: string, message: Msg): void;
  /** Also told of what the server refuses. */
  onFault(error: unknown): void;
}

/** The part of the client that subscriptions are registered with. Its public types leave it out. */
interface Registry {
  subscribe(subscription: TopicSubscription): void;
  unsubscribe(subscription: TopicSubscription): void;
}

/**
 * A subscription to one topic, of which a node may have hundreds of thousands. The client's own carries an iterator, three promises and their six
 * functions, about 1.1 KB, whether it is iterated or not; this is the part of it that the client itself calls (nats.js 2.29, whose version is pinned).
 */
export class TopicSubscription {
  readonly subject: string;
  readonly #key: string;
  readonly #owner: SubscriptionOwner;
  readonly #registry: Registry;

  // What the client reads and writes.
  sid = 0;
  received = 0;
  max: number | undefined = undefined;
  readonly queue = undefined;

  /** Subscribes at once, and again whenever the connection is back. */
  constructor(nc: NatsConnection, subject: string, key: string, owner: SubscriptionOwner) {
    this.subject = subject;
    this.#key = key;
    this.#owner = owner;
    this.#registry = (nc as unknown as { readonly protocol: Registry }).protocol;
    this.#registry.subscribe(this);
  }

  unsubscribe(): void {
    this.#registry.unsubscribe(this);
  }

  /** Called by the client, whose reader ends when this throws: it would then hear nothing any more. */
  callback(error: unknown, message: Msg): void {
    if (error !== null) return this.#owner.onFault(error);
    try {
      this.#owner.onMessage(this.#key, message);
    } catch (thrown) {
      this.#owner.onFault(thrown);
    }
  }

  /** Called by the client when the connection is closed for good, or the server has refused the subscription. */
  close(): void {
    // Nothing is held that would have to be let go of.
  }

  /** Called by the client before it closes. */
  drain(): Promise<void> {
    this.unsubscribe();
    return Promise.resolve();
  }
}
