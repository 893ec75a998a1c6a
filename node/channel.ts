import type { HistoryPage, TopicBus } from '../broker/bus.js';
import type { NamespaceSettings } from '../broker/namespaces.js';
import type { ChannelMessage } from './message.js';
import { Feed, type FeedHost, type FeedItem } from './feed.js';
import type { StreamOutlet } from './outlet.js';

/** What attachments ask the cluster, with the waiting between attempts. */
export interface ChannelSource extends Pick<
  TopicBus,
  'history' | 'latest' | 'recoverable' | 'head' | 'floor'
> {
  /** Resolves after a growing, bounded, jittered time. */
  backoff(attempt: number): Promise<void>;
  onReadFailed(error: unknown): void;
}

/** What all channels of a node share. */
export interface ChannelHost {
  readonly source: ChannelSource;
  readonly ringMessages: number;
  readonly ringBytes: number;
  publish(channel: Channel, items: readonly FeedItem[]): void;
  scheduleFlush(channel: Channel): void;
  retryLater(attempt: number, again: () => void): void;
  onRepaired(channel: Channel, messages: number, lost: boolean): void;
}

/**
 * What sessions join: a topic, a pattern, or a group of patterns that overlap. Hosted while somebody holds it, and a little longer. A node may have
 * hundreds of thousands, so what is mostly empty is made when it is needed.
 */
export class Channel implements FeedHost {
  readonly key: string;
  readonly filters: readonly string[];
  readonly namespace: string;
  readonly settings: NamespaceSettings;
  /** Only on durable channels. */
  readonly feed: Feed | undefined;
  readonly jsonTopic: string;
  readonly msgpackTopic: string;
  /** Sessions that are live on it, by codec; the fan-out skips a codec that nobody speaks. */
  jsonCount = 0;
  msgpackCount = 0;
  /** Messages handed on to its sessions so far, and what `hot-topics.ts` last made of that. */
  messages = 0;
  sampledMessages = 0;
  messagesPerSec = 0;
  /** Attachments that hold it; managed by the registry. */
  holders = 0;
  lingerTimer: NodeJS.Timeout | undefined;
  #open = false;
  #closed = false;
  #waiters: (() => void)[] | undefined;
  #held: FeedItem[] | undefined;
  #streams: Set<StreamOutlet> | undefined;
  readonly #host: ChannelHost;

  /** @param filters one topic, or the maximal patterns, sorted; all of one namespace, whose settings follow */
  constructor(
    key: string,
    filters: readonly string[],
    namespace: string,
    settings: NamespaceSettings,
    host: ChannelHost,
  ) {
    this.key = key;
    this.filters = filters;
    this.namespace = namespace;
    this.settings = settings;
    this.#host = host;
    this.jsonTopic = `j/${key}`;
    this.msgpackTopic = `m/${key}`;
    this.feed = settings.delivery === 'durable' ? new Feed(this) : undefined;
  }

  get source(): ChannelSource {
    return this.#host.source;
  }

  get ringMessages(): number {
    return this.#host.ringMessages;
  }

  get ringBytes(): number {
    return this.#host.ringBytes;
  }

  /** Sessions over Server-Sent Events. */
  get streams(): Iterable<StreamOutlet> {
    return this.#streams ?? [];
  }

  get subscribers(): number {
    return this.jsonCount + this.msgpackCount + (this.#streams?.size ?? 0);
  }

  addStream(stream: StreamOutlet): void {
    (this.#streams ??= new Set()).add(stream);
  }

  removeStream(stream: StreamOutlet): void {
    this.#streams?.delete(stream);
    if (this.#streams?.size === 0) this.#streams = undefined;
  }

  get isOpen(): boolean {
    return this.#open;
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** Resolves when the bus hosts it, or it was closed before that. */
  whenOpen(): Promise<void> {
    if (this.#open || this.#closed) return Promise.resolve();
    return new Promise((resolve) => (this.#waiters ??= []).push(resolve));
  }

  opened(): void {
    this.#open = true;
    this.#wake();
  }

  closed(): void {
    this.#open = false;
    this.#closed = true;
    this.#held = undefined;
    this.feed?.close();
    this.#wake();
  }

  /** A live message: held for a moment like those of a feed, so that bursts are batched. */
  receiveLive(message: ChannelMessage): void {
    const item: FeedItem = { kind: 'message', message };
    if (this.#held !== undefined) {
      this.#held.push(item);
      return;
    }
    this.#held = [item];
    this.scheduleFlush();
  }

  flush(): void {
    if (this.feed !== undefined) return this.feed.flush();
    const items = this.#held;
    if (items === undefined) return;
    this.#held = undefined;
    this.publish(items);
  }

  // What its feed asks for.

  readHistory(after: number, limit: number, from: number): Promise<HistoryPage> {
    return this.#host.source.history(this.filters, after, limit, from);
  }

  scheduleFlush(): void {
    this.#host.scheduleFlush(this);
  }

  publish(items: readonly FeedItem[]): void {
    this.#host.publish(this, items);
  }

  retryLater(attempt: number, again: () => void): void {
    this.#host.retryLater(attempt, again);
  }

  onRepaired(messages: number, lost: boolean): void {
    this.#host.onRepaired(this, messages, lost);
  }

  #wake(): void {
    const waiters = this.#waiters;
    this.#waiters = undefined;
    for (const wake of waiters ?? []) wake();
  }
}
