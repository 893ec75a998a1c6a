import type { Payload } from '../protocol/payload.js';
import type { Position } from '../protocol/position.js';
import { namespaceOf } from '../protocol/topic.js';
import {
  deduplicationMs,
  type BusHandler,
  type HistoryPage,
  type Interest,
  type OpenedHead,
  type OutgoingMessage,
  type Published,
  type PublishOutcome,
  type TopicBus,
} from './bus.js';
import { unavailable } from './errors.js';
import { exactTopic, MemoryStream, type Appended } from './memory-stream.js';
import type { Namespaces } from './namespaces.js';
import { PatternIndex } from './pattern-index.js';
import { publishEach } from './publish-each.js';
import { RecentIds } from './recent-ids.js';

export const storeBytesMaxDefault = 256 * 1024 * 1024;
/** Message ids that one namespace remembers at most: beyond it the oldest are forgotten before their two minutes. */
export const recentIdsMaxDefault = 250_000;

export interface MemoryBusOptions {
  readonly namespaces: Namespaces;
  /** Of all streams together; the oldest messages are dropped beyond it, but never the one that was just published. */
  readonly storeBytesMax?: number;
  readonly recentIdsMax?: number;
  /** ms since the Unix epoch. */
  readonly now?: () => number;
}

export interface MemoryBus extends TopicBus {
  /** What it holds at this moment, without what has expired. */
  sizes(): MemoryBusSizes;
}

export interface MemoryBusSizes {
  readonly interests: number;
  readonly topics: number;
  readonly messages: number;
  /** Of payloads, topics and an estimate of what keeping them costs. */
  readonly bytes: number;
  /** Remembered message ids. */
  readonly ids: number;
}

/**
 * The topic bus of a node that is alone: everything in this process, the same guarantees, gone with it (the next start
 * has new epochs). Messages are delivered before the promise of `publish` settles.
 */
export function createMemoryBus(options: MemoryBusOptions): MemoryBus {
  return new MemoryTopicBus(options);
}

interface OpenInterest {
  readonly key: string;
  readonly filters: readonly string[];
  /** Whether it is one exact topic, which has the `prev` of the topic. */
  readonly exact: boolean;
  open: boolean;
  /** The newest offset of a pattern or group; 0 when there was none. */
  last: number;
  /** The delivery that it was last collected for: a group whose filters match twice is collected once. */
  delivery: number;
}

interface Channel {
  readonly stream: MemoryStream;
  readonly ids: RecentIds;
  /** The offset up to which everything was delivered. */
  delivered: number;
}

interface Delivery {
  readonly topic: string;
  readonly payload: Payload;
  readonly interests: readonly OpenInterest[];
  readonly stored?: Appended & { readonly channel: Channel };
}

class MemoryTopicBus implements MemoryBus {
  readonly #namespaces: Namespaces;
  readonly #storeBytesMax: number;
  readonly #recentIdsMax: number;
  readonly #now: () => number;
  readonly #channels = new Map<string, Channel>();
  readonly #interests = new Map<string, OpenInterest>();
  readonly #index = new PatternIndex<OpenInterest>();
  readonly #waiting: Delivery[] = [];
  #handler: BusHandler | undefined;
  #delivering = false;
  #deliveries = 0;

  constructor(options: MemoryBusOptions) {
    this.#namespaces = options.namespaces;
    this.#storeBytesMax = options.storeBytesMax ?? storeBytesMaxDefault;
    this.#recentIdsMax = options.recentIdsMax ?? recentIdsMaxDefault;
    this.#now = options.now ?? Date.now;
  }

  get connected(): boolean {
    return this.#handler !== undefined;
  }

  async start(handler: BusHandler): Promise<void> {
    if (this.#handler !== undefined) throw new Error('the bus is started already');
    this.#handler = handler;
    for (const namespace of this.#namespaces.durable) this.#channelOf(namespace);
  }

  async open({ key, filters }: Interest): Promise<OpenedHead | undefined> {
    this.#demandStarted();
    if (this.#interests.has(key)) throw new Error(`the interest ${key} is open already`);
    const stream = this.#channelOf(namespaceOfAll(filters))?.stream;
    const exact = exactTopic(filters) !== undefined;
    const last = stream === undefined || exact ? 0 : stream.newest(filters);
    const interest = { key, filters, exact, open: true, last, delivery: 0 };
    this.#interests.set(key, interest);
    for (const filter of filters) this.#index.add(filter, interest);
    return stream === undefined ? undefined : { ...stream.head, newest: stream.newest(filters) };
  }

  close(key: string): void {
    const interest = this.#interests.get(key);
    if (interest === undefined) return;
    interest.open = false;
    this.#interests.delete(key);
    for (const filter of interest.filters) this.#index.remove(filter, interest);
  }

  async publish(message: OutgoingMessage): Promise<Published | undefined> {
    this.#demandStarted();
    const { topic, payload } = message;
    const channel = this.#channelOf(namespaceOf(topic));
    if (channel === undefined) {
      this.#deliver({ topic, payload, interests: this.#interested(topic) });
      return undefined;
    }
    const { epoch } = channel.stream;
    const idKey = message.id === undefined ? undefined : keyOfId(message.publisher, topic, message.id);
    const earlier = idKey === undefined ? undefined : channel.ids.find(idKey, this.#now());
    if (earlier !== undefined) return { epoch, offset: earlier, duplicate: true };
    const appended = channel.stream.append(topic, payload);
    if (idKey !== undefined) channel.ids.add(idKey, appended.offset, this.#now());
    this.#boundBytes();
    this.#deliver({ topic, payload, interests: this.#interested(topic), stored: { ...appended, channel } });
    return { epoch, offset: appended.offset, duplicate: false };
  }

  publishAll(messages: readonly OutgoingMessage[]): Promise<readonly PublishOutcome[]> {
    return publishEach(this, messages);
  }

  async history(
    filters: readonly string[],
    after: number,
    limit: number,
    from = after,
  ): Promise<HistoryPage> {
    return this.#streamOf(filters).history(filters, after, limit, from);
  }

  async latest(filters: readonly string[], count: number): Promise<HistoryPage> {
    return this.#streamOf(filters).latest(filters, count);
  }

  async recoverable(filters: readonly string[], offset: number): Promise<boolean> {
    return this.#streamOf(filters).recoverable(filters, offset);
  }

  async head(filters: readonly string[]): Promise<OpenedHead> {
    const stream = this.#streamOf(filters);
    return { ...stream.head, newest: stream.newest(filters) };
  }

  floor(namespace: string): Position | undefined {
    const channel = this.#handler === undefined ? undefined : this.#channelOf(namespace);
    return channel === undefined ? undefined : { epoch: channel.stream.epoch, offset: channel.delivered };
  }

  async stop(): Promise<void> {
    for (const key of [...this.#interests.keys()]) this.close(key);
    this.#handler = undefined;
    this.#channels.clear();
  }

  sizes(): MemoryBusSizes {
    const sum = (read: (channel: Channel) => number): number => {
      return [...this.#channels.values()].reduce((total, channel) => total + read(channel), 0);
    };
    for (const { stream, ids } of this.#channels.values()) {
      stream.expire();
      ids.trim(this.#now());
    }
    return {
      interests: this.#interests.size + this.#index.branches,
      topics: sum(({ stream }) => stream.topics),
      messages: sum(({ stream }) => stream.messages),
      bytes: sum(({ stream }) => stream.bytes),
      ids: sum(({ ids }) => ids.size),
    };
  }

  #demandStarted(): void {
    if (this.#handler === undefined) throw unavailable('the bus is not running');
  }

  /** Of a durable namespace; undefined for one that is live. */
  #channelOf(namespace: string): Channel | undefined {
    const known = this.#channels.get(namespace);
    if (known !== undefined) return known;
    const settings = this.#namespaces.of(namespace);
    if (settings.delivery !== 'durable') return undefined;
    const stream = new MemoryStream(settings, this.#now);
    const channel = { stream, ids: new RecentIds(deduplicationMs, this.#recentIdsMax), delivered: 0 };
    this.#channels.set(namespace, channel);
    return channel;
  }

  #streamOf(filters: readonly string[]): MemoryStream {
    this.#demandStarted();
    const namespace = namespaceOfAll(filters);
    const channel = this.#channelOf(namespace);
    if (channel === undefined) throw new Error(`nothing is stored of ${namespace}, which is not durable`);
    return channel.stream;
  }

  #boundBytes(): void {
    for (;;) {
      let bytes = 0;
      let messages = 0;
      let oldest: MemoryStream | undefined;
      for (const { stream } of this.#channels.values()) {
        bytes += stream.bytes;
        messages += stream.messages;
        const isOlder = (stream.oldestAt ?? Infinity) < (oldest?.oldestAt ?? Infinity);
        if (isOlder) oldest = stream;
      }
      if (bytes <= this.#storeBytesMax || messages <= 1 || oldest === undefined) return;
      oldest.dropOldest();
    }
  }

  #interested(topic: string): OpenInterest[] {
    const delivery = ++this.#deliveries;
    const interests: OpenInterest[] = [];
    this.#index.match(topic, (interest) => {
      if (interest.delivery === delivery) return;
      interest.delivery = delivery;
      interests.push(interest);
    });
    return interests;
  }

  /**
   * Whom a message goes to was settled when it was published. A publish that a handler makes waits for the one in
   * delivery, or interests would see the two in different orders. A fault of the handler is thrown after all were served.
   */
  #deliver(delivery: Delivery): void {
    this.#waiting.push(delivery);
    if (this.#delivering) return;
    this.#delivering = true;
    const faults: unknown[] = [];
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      for (const interest of next.interests) {
        try {
          if (interest.open) this.#hand(next, interest);
        } catch (fault) {
          faults.push(fault);
        }
      }
      if (next.stored !== undefined) next.stored.channel.delivered = next.stored.offset;
    }
    this.#delivering = false;
    if (faults.length > 0) throw new AggregateError(faults, 'the handler of the bus threw');
  }

  #hand({ topic, payload, stored }: Delivery, interest: OpenInterest): void {
    if (stored === undefined) {
      this.#handler?.onLive(interest.key, { topic, payload });
      return;
    }
    let { prev } = stored;
    if (!interest.exact) {
      // The newest message of an interest is only ever dropped from the front of the stream.
      prev = interest.last < stored.first ? 0 : interest.last;
      interest.last = stored.offset;
    }
    this.#handler?.onStored(interest.key, { topic, payload, offset: stored.offset, prev });
  }
}

function namespaceOfAll(filters: readonly string[]): string {
  const [namespace, ...others] = new Set(filters.map(namespaceOf));
  if (namespace === undefined || others.length > 0) {
    throw new Error(`an interest has filters of one namespace: ${filters.join(' ')}`);
  }
  return namespace;
}

/** Injective: neither a topic nor a length holds a space. */
function keyOfId(publisher: string, topic: string, id: string): string {
  return `${topic} ${publisher.length} ${publisher}${id}`;
}
