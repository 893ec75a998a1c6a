import { NatsError, type KV, type Msg } from 'nats';
import type { Position } from '../protocol/position.js';
import { namespaceOf } from '../protocol/topic.js';
import type {
  BusHandler,
  HistoryPage,
  Interest,
  OpenedHead,
  OutgoingMessage,
  Published,
  PublishOutcome,
  TopicBus,
} from './bus.js';
import { BrokerError, unavailable } from './errors.js';
import type { Namespaces } from './namespaces.js';
import { decodeBody } from './nats-body.js';
import { openBucket } from './nats-bucket.js';
import { auditGraceMs, NatsDurable } from './nats-durable.js';
import { NatsEpochs } from './nats-epochs.js';
import { NatsLimits } from './nats-limits.js';
import type { NatsLink } from './nats-link.js';
import { NatsLive } from './nats-live.js';
import { NatsPublisher } from './nats-publisher.js';
import { NatsPublishing } from './nats-publishing.js';
import { NatsReader } from './nats-reader.js';
import { NatsStream } from './nats-stream.js';
import { createSubjects, type Subjects } from './nats-subjects.js';
import { PatternIndex } from './pattern-index.js';

export interface NatsBusOptions {
  readonly link: NatsLink;
  readonly namespaces: Namespaces;
  /** The first token of every subject. */
  readonly prefix: string;
  /** Copies of each stream, when there are as many servers. */
  readonly replicas: number;
  /** How often the tail of each stream is compared with what was delivered. */
  readonly auditSec: number;
  readonly onFault: (error: unknown) => void;
}

/**
 * The topic bus of a cluster. Live topics ride on core NATS. Durable ones are captured by one stream a namespace, which republishes what it stored;
 * republishing is at most once, so `prev`, the catch-up after a reconnect and the audit make it safe.
 */
export function createNatsBus(options: NatsBusOptions): TopicBus {
  return new NatsBus(options);
}

class NatsBus implements TopicBus {
  readonly #options: NatsBusOptions;
  readonly #link: NatsLink;
  readonly #subjects: Subjects;
  readonly #publisher: NatsPublisher;
  readonly #publishing: NatsPublishing;
  readonly #live: NatsLive;
  readonly #liveInterests = new Map<string, Interest>();
  readonly #liveIndex = new PatternIndex<string>();
  readonly #durable = new Map<string, NatsDurable>();
  #handler: BusHandler | undefined;
  #auditTimer: NodeJS.Timeout | undefined;
  #stopping = false;

  constructor(options: NatsBusOptions) {
    this.#options = options;
    this.#link = options.link;
    this.#subjects = createSubjects(options.prefix);
    this.#publisher = new NatsPublisher(options.link, options.onFault);
    this.#publishing = new NatsPublishing({
      link: options.link,
      subjects: this.#subjects,
      publisher: this.#publisher,
      durable: this.#durable,
      isConnected: () => this.connected,
    });
    this.#live = new NatsLive(
      options.link,
      this.#subjects,
      (topic, message) => this.#onLive(topic, message),
      options.onFault,
    );
  }

  get connected(): boolean {
    return this.#handler !== undefined && !this.#stopping && this.#link.connected;
  }

  async start(handler: BusHandler): Promise<void> {
    const end = performance.now() + startMsMax;
    let told: string | undefined;
    for (let isReady = false; !isReady;) {
      try {
        await this.#openStreams(handler);
        isReady = true;
      } catch (error) {
        if (performance.now() > end || !mayPass(error)) {
          throw unavailable('the streams could not be made ready', error);
        }
        // The servers may have been started together with this node, and are still electing their leaders.
        const message = String(error);
        if (message !== told) this.#options.onFault(error);
        told = message;
        await new Promise((resolve) => setTimeout(resolve, startAgainMs));
      }
    }
    this.#handler = handler;
    this.#link.watch((connected) => this.#onConnected(connected));
    // What an audit waits for before it looks belongs to the time within which a loss is found.
    const auditMs = this.#options.auditSec * 1000 - auditGraceMs;
    this.#auditTimer = setInterval(() => this.#auditAll(), auditMs).unref();
  }

  async open(interest: Interest): Promise<OpenedHead | undefined> {
    if (!this.connected) throw unavailable('NATS is out of reach');
    const durable = this.#durableOf(interest.filters);
    if (durable !== undefined) return durable.open(interest.key, interest.filters);
    if (this.#liveInterests.has(interest.key)) {
      throw new Error(`the interest ${interest.key} is open already`);
    }
    this.#liveInterests.set(interest.key, interest);
    for (const filter of interest.filters) this.#liveIndex.add(filter, interest.key);
    this.#live.add(interest.filters);
    try {
      // When the server has answered, it knows of the subscription.
      await this.#link.nc.flush();
    } catch (error) {
      this.close(interest.key);
      throw unavailable('NATS was lost meanwhile', error);
    }
    return undefined;
  }

  close(key: string): void {
    for (const durable of this.#durable.values()) durable.close(key);
    const interest = this.#liveInterests.get(key);
    if (interest === undefined) return;
    this.#liveInterests.delete(key);
    for (const filter of interest.filters) this.#liveIndex.remove(filter, key);
    this.#live.remove(interest.filters);
  }

  publish(message: OutgoingMessage): Promise<Published | undefined> {
    return this.#publishing.publish(message);
  }

  publishAll(messages: readonly OutgoingMessage[]): Promise<readonly PublishOutcome[]> {
    return this.#publishing.publishAll(messages);
  }

  async history(
    filters: readonly string[],
    after: number,
    limit: number,
    from = after,
  ): Promise<HistoryPage> {
    return this.#demandDurable(filters).history(filters, after, limit, from);
  }

  async latest(filters: readonly string[], count: number): Promise<HistoryPage> {
    return this.#demandDurable(filters).latest(filters, count);
  }

  async recoverable(filters: readonly string[], offset: number): Promise<boolean> {
    return this.#demandDurable(filters).recoverable(filters, offset);
  }

  async head(filters: readonly string[]): Promise<OpenedHead> {
    return this.#demandDurable(filters).head(filters);
  }

  floor(namespace: string): Position | undefined {
    return this.#durable.get(namespace)?.floor;
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    clearInterval(this.#auditTimer);
    for (const durable of this.#durable.values()) durable.stop();
    for (const key of [...this.#liveInterests.keys()]) this.close(key);
    if (this.#link.connected) await this.#publisher.settled();
    this.#publisher.stop();
    this.#handler = undefined;
  }

  async #openStreams(handler: BusHandler): Promise<void> {
    const { namespaces, prefix, replicas } = this.#options;
    const bucket = await openBucket(this.#link, createSubjects(prefix).epochsBucket, replicas);
    for (const namespace of namespaces.durable) {
      this.#durable.set(namespace, await this.#openDurable(namespace, bucket, handler));
    }
  }

  async #openDurable(namespace: string, bucket: KV, handler: BusHandler): Promise<NatsDurable> {
    const { namespaces, onFault, replicas } = this.#options;
    const subjects = this.#subjects;
    const link = this.#link;
    const epochs = new NatsEpochs(bucket);
    const limits = new NatsLimits(bucket, namespace);
    const stream = new NatsStream(link, subjects, namespace, namespaces.of(namespace), limits);
    await stream.ensure(replicas);
    const claim = await epochs.claim(stream);
    const reader = new NatsReader(link, subjects);
    return new NatsDurable({ link, subjects, stream, reader, epochs, handler, replicas, onFault }, claim);
  }

  #durableOf(filters: readonly string[]): NatsDurable | undefined {
    return this.#durable.get(namespaceOf(filters[0] ?? ''));
  }

  #demandDurable(filters: readonly string[]): NatsDurable {
    const durable = this.#durableOf(filters);
    if (durable === undefined) {
      throw new Error(`nothing is stored of ${filters.join(' ')}, which is not durable`);
    }
    return durable;
  }

  #onLive(topic: string, message: Msg): void {
    const keys = new Set<string>();
    this.#liveIndex.match(topic, (key) => keys.add(key));
    if (keys.size === 0) return;
    const body = decodeBody(message);
    for (const key of keys) {
      if (body.ok) this.#handler?.onLive(key, { topic, payload: body.value });
      else this.#handler?.onUnparsable(key, { topic, offset: 0, prev: 0 }, body.message);
    }
  }

  #onConnected(connected: boolean): void {
    if (!connected) this.#publisher.onDisconnected();
    this.#handler?.onConnected(connected);
    if (!connected) return;
    // What was stored while the connection was away was not delivered to it.
    for (const durable of this.#durable.values()) this.#catchUp(durable);
  }

  /** Until it succeeds: the streams may still be electing their leaders. */
  #catchUp(durable: NatsDurable): void {
    if (!this.#link.connected || this.#stopping) return;
    durable.catchUp().catch((error: unknown) => {
      this.#options.onFault(error);
      setTimeout(() => this.#catchUp(durable), catchUpRetryMs).unref();
    });
  }

  #auditAll(): void {
    if (!this.#link.connected) return;
    for (const durable of this.#durable.values()) {
      durable.audit().catch((error: unknown) => this.#options.onFault(error));
    }
  }
}

const catchUpRetryMs = 500;
/** How long a start waits for streams that have no leader yet. */
const startMsMax = 30_000;
const startAgainMs = 500;

/** Whether waiting may help: nobody answered, or nobody is in charge yet. What JetStream answers as an error of the request stays one. */
function mayPass(error: unknown): boolean {
  if (error instanceof BrokerError) return true;
  return error instanceof NatsError && error.api_error?.code !== 400 && error.api_error?.code !== 403;
}
