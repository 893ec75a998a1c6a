import { consumerOpts, type JetStreamClient, type JetStreamSubscription, type JsMsg } from 'nats';
import { contains } from '../protocol/topic.js';
import type { NatsStream } from './nats-stream.js';
import type { Subjects } from './nats-subjects.js';

/** A stored message on its way to the interests that follow the stream. */
export type OnFollowed = (keys: Iterable<string>, topic: string, seq: number, message: JsMsg) => void;

/** Consumers of one namespace on one node; beyond it one consumer reads the whole stream for all of them. */
const followersMax = 32;
const restartMs = 500;

/**
 * Feeds durable patterns from stream order: one ordered consumer for each, shared by what it contains, or a single one for the
 * namespace when there are many. A message that a consumer delivers twice after a fault is dropped here.
 */
export class NatsFollowers {
  readonly #js: JetStreamClient;
  readonly #subjects: Subjects;
  readonly #stream: NatsStream;
  readonly #onMessage: OnFollowed;
  readonly #onFault: (error: unknown) => void;
  readonly #followers = new Map<string, Follower>();
  readonly #byKey = new Map<string, Follower>();

  constructor(
    js: JetStreamClient,
    subjects: Subjects,
    stream: NatsStream,
    onMessage: OnFollowed,
    onFault: (error: unknown) => void,
  ) {
    this.#js = js;
    this.#subjects = subjects;
    this.#stream = stream;
    this.#onMessage = onMessage;
    this.#onFault = onFault;
  }

  get size(): number {
    return this.#followers.size;
  }

  /** Follows an interest: everything stored after `after`, and perhaps a little from before. */
  async add(key: string, filters: readonly string[], after: number): Promise<void> {
    const [only, ...others] = filters;
    const whole = `${this.#stream.namespace}.>`;
    const wanted = only !== undefined && others.length === 0 ? only : whole;
    const found = [...this.#followers.values()].find((f) => contains(f.filter, wanted));
    if (found !== undefined) {
      found.keys.add(key);
      this.#byKey.set(key, found);
      return;
    }
    const filter = this.#followers.size >= followersMax ? whole : wanted;
    const follower = new Follower(filter, this.#start, this.#onMessage, this.#onFault);
    this.#followers.set(filter, follower);
    follower.keys.add(key);
    this.#byKey.set(key, follower);
    await follower.start(after);
  }

  remove(key: string): void {
    const follower = this.#byKey.get(key);
    this.#byKey.delete(key);
    if (follower === undefined) return;
    follower.keys.delete(key);
    if (follower.keys.size > 0) return;
    follower.stop();
    this.#followers.delete(follower.filter);
  }

  /** The stream was replaced: everything goes on at its new head. */
  async restart(after: number): Promise<void> {
    await Promise.all([...this.#followers.values()].map((follower) => follower.start(after)));
  }

  stop(): void {
    for (const follower of this.#followers.values()) follower.stop();
    this.#followers.clear();
    this.#byKey.clear();
  }

  readonly #start = (
    filter: string,
    after: number,
    onMessage: (topic: string, message: JsMsg) => void,
  ): Promise<JetStreamSubscription> => {
    const options = consumerOpts();
    options.bindStream(this.#stream.name);
    options.orderedConsumer();
    options.startSequence(after + 1);
    options.callback((error, message) => {
      if (error !== null) this.#onFault(error);
      else if (message !== null) onMessage(this.#subjects.topicOf(message.subject), message);
    });
    return this.#js.subscribe(this.#subjects.in(filter), options);
  };
}

type StartConsumer = (
  filter: string,
  after: number,
  onMessage: (topic: string, message: JsMsg) => void,
) => Promise<JetStreamSubscription>;

/** One ordered consumer, started again from where it was whenever it ends. */
class Follower {
  readonly filter: string;
  readonly keys = new Set<string>();
  readonly #startConsumer: StartConsumer;
  readonly #onMessage: OnFollowed;
  readonly #onFault: (error: unknown) => void;
  #last = 0;
  #generation = 0;
  #subscription: JetStreamSubscription | undefined;

  constructor(
    filter: string,
    startConsumer: StartConsumer,
    onMessage: OnFollowed,
    onFault: (error: unknown) => void,
  ) {
    this.filter = filter;
    this.#startConsumer = startConsumer;
    this.#onMessage = onMessage;
    this.#onFault = onFault;
  }

  /** @throws what the client throws; then it goes on trying by itself */
  async start(after: number): Promise<void> {
    this.stop();
    this.#last = after;
    await this.#subscribe(this.#generation);
  }

  stop(): void {
    this.#generation++;
    this.#subscription?.unsubscribe();
    this.#subscription = undefined;
  }

  async #subscribe(generation: number): Promise<void> {
    try {
      const subscription = await this.#startConsumer(this.filter, this.#last, (topic, message) => {
        if (generation !== this.#generation || message.seq <= this.#last) return;
        this.#last = message.seq;
        this.#onMessage(this.keys, topic, message.seq, message);
      });
      if (generation !== this.#generation) return subscription.unsubscribe();
      this.#subscription = subscription;
      void subscription.closed.then(() => this.#retry(generation));
    } catch (error) {
      this.#retry(generation);
      throw error;
    }
  }

  #retry(generation: number): void {
    if (generation !== this.#generation) return;
    setTimeout(() => {
      if (generation !== this.#generation) return;
      this.#subscribe(generation).catch((error: unknown) => this.#onFault(error));
    }, restartMs).unref();
  }
}
