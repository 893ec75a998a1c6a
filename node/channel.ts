import type { TopicBus } from '../broker/bus.js';
import type { NamespaceSettings } from '../broker/namespaces.js';
import type { ChannelMessage } from './message.js';
import type { Feed, FeedItem } from './feed.js';
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

/** What sessions join: a topic, a pattern, or a group of patterns that overlap. Hosted while somebody holds it, and a little longer. */
export interface ChannelOptions {
  readonly key: string;
  /** One topic, or the maximal patterns, sorted. All of one namespace. */
  readonly filters: readonly string[];
  readonly namespace: string;
  readonly settings: NamespaceSettings;
  readonly source: ChannelSource;
  readonly feed: Feed | undefined;
  readonly publish: (channel: Channel, items: readonly FeedItem[]) => void;
  readonly scheduleFlush: (channel: Channel) => void;
}

export class Channel {
  readonly key: string;
  readonly filters: readonly string[];
  readonly namespace: string;
  readonly settings: NamespaceSettings;
  readonly source: ChannelSource;
  /** Only on durable channels. */
  readonly feed: Feed | undefined;
  readonly jsonTopic: string;
  readonly msgpackTopic: string;
  /** Sessions that are live on it, by codec; the fan-out skips a codec that nobody speaks. */
  jsonCount = 0;
  msgpackCount = 0;
  readonly streams = new Set<StreamOutlet>();
  /** Messages handed on to its sessions so far, and what `hot-topics.ts` last made of that. */
  messages = 0;
  sampledMessages = 0;
  messagesPerSec = 0;
  /** Attachments that hold it; managed by the registry. */
  holders = 0;
  lingerTimer: NodeJS.Timeout | undefined;
  #open = false;
  #closed = false;
  #waiters: (() => void)[] = [];
  #held: FeedItem[] = [];
  readonly #publish: ChannelOptions['publish'];
  readonly #scheduleFlush: ChannelOptions['scheduleFlush'];

  constructor(options: ChannelOptions) {
    this.key = options.key;
    this.filters = options.filters;
    this.namespace = options.namespace;
    this.settings = options.settings;
    this.source = options.source;
    this.feed = options.feed;
    this.jsonTopic = `j/${options.key}`;
    this.msgpackTopic = `m/${options.key}`;
    this.#publish = options.publish;
    this.#scheduleFlush = options.scheduleFlush;
  }

  get subscribers(): number {
    return this.jsonCount + this.msgpackCount + this.streams.size;
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
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  opened(): void {
    this.#open = true;
    this.#wake();
  }

  closed(): void {
    this.#open = false;
    this.#closed = true;
    this.#held = [];
    this.feed?.close();
    this.#wake();
  }

  /** A live message: held for a moment like those of a feed, so that bursts are batched. */
  receiveLive(message: ChannelMessage): void {
    this.#held.push({ kind: 'message', message });
    if (this.#held.length === 1) this.#scheduleFlush(this);
  }

  flush(): void {
    if (this.feed !== undefined) return this.feed.flush();
    if (this.#held.length === 0) return;
    const items = this.#held;
    this.#held = [];
    this.#publish(this, items);
  }

  #wake(): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const wake of waiters) wake();
  }
}
