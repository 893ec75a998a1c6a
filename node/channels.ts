import type { BusHandler, LiveMessage, StoredMessage, TopicBus } from '../broker/bus.js';
import type { Namespaces } from '../broker/namespaces.js';
import type { Position } from '../protocol/position.js';
import { isPattern, matches, namespaceOf } from '../protocol/topic.js';
import type { Batcher } from './batcher.js';
import { Channel, type ChannelHost, type ChannelSource } from './channel.js';
import type { Fanout } from './fanout.js';
import type { Logger } from './log.js';
import { ChannelMessage } from './message.js';
import type { Counters } from './metrics.js';
import { ownText } from './own-text.js';

export interface ChannelsOptions {
  readonly bus: TopicBus;
  readonly namespaces: Namespaces;
  readonly fanout: Fanout;
  readonly batcher: Batcher;
  readonly ringMessages: number;
  readonly ringBytes: number;
  /** How long the node keeps interest in a channel that nobody holds any more. */
  readonly lingerMs: number;
  readonly log: Logger;
  readonly counters: Pick<Counters, 'gapsRepaired' | 'gapsLost' | 'bodiesDropped'>;
  /** The stream of a namespace was replaced: sessions have to be told. */
  readonly onEpoch: (namespace: string, head: Position) => void;
  /** NATS is back: what other nodes said meanwhile was not heard. */
  readonly onBack?: () => void;
}

const backoffMsMax = 2000;

/** Every channel that this node hosts: opened with the first holder, closed some time after the last (G3). */
export class Channels implements BusHandler {
  readonly #options: ChannelsOptions;
  readonly #channels = new Map<string, Channel>();
  readonly #host: ChannelHost;

  constructor(options: ChannelsOptions) {
    this.#options = options;
    const { batcher, bus, counters, fanout, log, ringBytes, ringMessages } = options;
    const source: ChannelSource = {
      history: (filters, after, limit, from) => bus.history(filters, after, limit, from),
      latest: (filters, count) => bus.latest(filters, count),
      recoverable: (filters, offset) => bus.recoverable(filters, offset),
      head: (filters) => bus.head(filters),
      floor: (namespace) => bus.floor(namespace),
      backoff: (attempt) => new Promise((resolve) => setTimeout(resolve, backoffMs(attempt))),
      onReadFailed: (error) => {
        log.warn({ err: error }, 'a read of the history failed and will be tried again');
      },
    };
    this.#host = {
      source,
      ringMessages,
      ringBytes,
      publish: (channel, items) => fanout.publish(channel, items),
      scheduleFlush: (channel) => batcher.add(channel),
      retryLater: (attempt, again) => {
        setTimeout(again, backoffMs(attempt)).unref();
      },
      onRepaired: (channel, messages, lost) => {
        counters.gapsRepaired += messages;
        if (lost) counters.gapsLost++;
        log.info({ channel: channel.key, messages, lost }, 'repaired a gap');
      },
    };
  }

  get size(): number {
    return this.#channels.size;
  }

  all(): Iterable<Channel> {
    return this.#channels.values();
  }

  /** A filter as text that may be kept (`ownText`), which is that of its channel if there is one. */
  ownName(filter: string): string {
    return this.#channels.get(filter)?.key ?? ownText(filter);
  }

  /** The channel of these filters (one topic, or sorted patterns), opened when it is not yet. Each call needs a `release`. */
  acquire(key: string, filters: readonly string[]): Channel {
    let channel = this.#channels.get(key);
    if (channel === undefined) {
      channel = this.#create(key, filters);
      this.#channels.set(key, channel);
      this.#open(channel, 0);
    }
    clearTimeout(channel.lingerTimer);
    channel.lingerTimer = undefined;
    channel.holders++;
    return channel;
  }

  release(channel: Channel): void {
    channel.holders--;
    if (channel.holders === 0) this.#linger(channel);
  }

  /** Live sessions on all channels that a message of this topic (or pattern, taken literally) goes to. */
  subscribersOf(topic: string): number {
    let count = 0;
    for (const channel of this.#channels.values()) {
      if (channel.filters.some((filter) => matches(filter, topic))) count += channel.subscribers;
    }
    return count;
  }

  onLive(key: string, message: LiveMessage): void {
    const channel = this.#channels.get(key);
    if (channel === undefined) return;
    const pattern = isPattern(key) ? channel.filters.find((f) => matches(f, message.topic)) : undefined;
    channel.receiveLive(new ChannelMessage(message, 0, pattern));
  }

  onStored(key: string, message: StoredMessage): void {
    this.#channels.get(key)?.feed?.receive(message);
  }

  onEpoch(namespace: string, head: Position): void {
    for (const channel of this.#channels.values()) {
      if (channel.namespace === namespace) channel.feed?.restart(head);
    }
    this.#options.onEpoch(namespace, head);
  }

  onBehind(key: string, offset: number): void {
    this.#channels.get(key)?.feed?.repair(offset);
  }

  onUnparsable(key: string, place: Omit<StoredMessage, 'payload'>, reason: string): void {
    this.#options.counters.bodiesDropped++;
    this.#options.log.warn(
      { topic: place.topic, offset: place.offset, reason },
      'dropped a body that cannot be read',
    );
    this.#channels.get(key)?.feed?.skip(place);
  }

  onConnected(connected: boolean): void {
    this.#options.log.warn(connected ? 'NATS is back' : 'NATS is out of reach');
    if (connected) this.#options.onBack?.();
  }

  #create(key: string, filters: readonly string[]): Channel {
    const namespace = namespaceOf(filters[0] ?? key);
    return new Channel(key, filters, namespace, this.#options.namespaces.of(namespace), this.#host);
  }

  #open(channel: Channel, attempt: number): void {
    this.#options.bus.open({ key: channel.key, filters: channel.filters }).then(
      (head) => {
        if (head !== undefined) channel.feed?.start(head);
        channel.opened();
        if (channel.holders === 0) this.#linger(channel);
      },
      (error: unknown) => {
        if (channel.holders === 0) return this.#forget(channel);
        this.#options.log.warn({ err: error, channel: channel.key }, 'a channel could not be opened yet');
        setTimeout(() => this.#open(channel, attempt + 1), backoffMs(attempt)).unref();
      },
    );
  }

  #linger(channel: Channel): void {
    clearTimeout(channel.lingerTimer);
    channel.lingerTimer = setTimeout(() => {
      // While the bus is still opening it, nobody else may: `#open` comes back here when that has settled.
      if (!channel.isOpen) return;
      this.#options.bus.close(channel.key);
      this.#forget(channel);
    }, this.#options.lingerMs).unref();
  }

  #forget(channel: Channel): void {
    this.#channels.delete(channel.key);
    channel.closed();
  }
}

/** Full jitter over 50 ms doubling to 2 s. */
function backoffMs(attempt: number): number {
  return Math.random() * Math.min(backoffMsMax, 50 * 2 ** attempt);
}
