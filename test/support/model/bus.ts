import type {
  BusHandler,
  HistoryPage,
  Interest,
  OpenedHead,
  StoredMessage,
  TopicBus,
} from '../../../broker/bus.js';
import { unavailable } from '../../../broker/errors.js';
import type { Position } from '../../../protocol/position.js';
import { matches } from '../../../protocol/topic.js';
import type { Random } from '../random.js';
import type { Entry, ModelStore } from './store.js';

export const namespace = 'd';

interface Hosted extends Interest {
  /** On their way to the node, in order. */
  readonly queue: StoredMessage[];
  opening: boolean;
  /** Something was lost on the way that the node may not have noticed. */
  lossy: boolean;
}

export interface Faults {
  /** Of 100 messages, reads and opens each. */
  lost: number;
  failed: number;
  stale: number;
}

/** The bus as one node sees it: late, lossy, with reads that take their time, fail, and may come from a replica that lags. */
export class ModelBus implements TopicBus {
  readonly #store: ModelStore;
  readonly #random: Random;
  readonly #faults: Faults;
  readonly #hosted = new Map<string, Hosted>();
  #pending: (() => void)[] = [];
  #handler: BusHandler | undefined;
  #floor: Position | undefined;
  /** The stream was replaced and this node does not know it yet. */
  epochDue = false;
  connected = true;

  constructor(store: ModelStore, random: Random, faults: Faults) {
    this.#store = store;
    this.#random = random;
    this.#faults = faults;
  }

  async start(handler: BusHandler): Promise<void> {
    this.#handler = handler;
  }

  open({ filters, key }: Interest): Promise<OpenedHead | undefined> {
    if (this.#hosted.has(key)) throw new Error(`the interest ${key} is open already`);
    const hosted: Hosted = { key, filters, queue: [], opening: true, lossy: false };
    this.#hosted.set(key, hosted);
    return this.#later(
      () => {
        hosted.opening = false;
        this.#demandTold();
        return { ...this.#store.head, newest: this.#newestOf(filters) };
      },
      () => this.#hosted.delete(key),
    );
  }

  close(key: string): void {
    this.#hosted.delete(key);
  }

  async publish(): Promise<undefined> {
    throw new Error('clients of the model do not publish');
  }

  async publishAll(): Promise<never> {
    throw new Error('clients of the model do not publish');
  }

  history(filters: readonly string[], after: number, _limit: number, from = after): Promise<HistoryPage> {
    const asked = this.#store.head;
    return this.#later(() => {
      const view = this.#chance(this.#faults.stale)
        ? { epoch: asked.epoch, offset: Math.max(0, asked.offset - this.#random.int(6)) }
        : this.#store.head;
      return this.#store.history(view, filters, after, from);
    });
  }

  latest(filters: readonly string[], count: number): Promise<HistoryPage> {
    return this.#later(() => this.#store.latest(this.#store.head, filters, count));
  }

  recoverable(filters: readonly string[], offset: number): Promise<boolean> {
    return this.#later(() => {
      this.#demandTold();
      const { epoch, offset: last } = this.#store.head;
      return offset <= last && !this.#store.hasLost(epoch, filters, offset, last);
    });
  }

  head(filters: readonly string[]): Promise<OpenedHead> {
    const asked = this.#store.head;
    return this.#later(() => {
      const head = this.#chance(50) && asked.epoch === this.#store.epoch ? asked : this.#store.head;
      const newest = this.#store.between(head.epoch, filters, 0, head.offset).at(-1)?.offset ?? 0;
      return { ...head, newest };
    });
  }

  floor(): Position | undefined {
    return this.#floor;
  }

  async stop(): Promise<void> {
    this.#hosted.clear();
  }

  /** Something was stored: it sets out for the node, or is lost. */
  stored({ offset, payload, topic }: Entry): void {
    for (const hosted of this.#hosted.values()) {
      if (!hosted.filters.some((filter) => matches(filter, topic))) continue;
      if (!this.connected || this.#chance(this.#faults.lost)) {
        hosted.lossy = true;
        continue;
      }
      const message = { topic, payload, offset, prev: this.#store.prevOf(hosted.filters, offset) };
      hosted.queue.push(message);
      if (this.#chance(this.#faults.lost)) hosted.queue.push(message);
    }
  }

  get isIdle(): boolean {
    return this.#pending.length === 0 && ![...this.#hosted.values()].some((h) => h.queue.length > 0);
  }

  /** Hands the node the next messages of one interest. */
  deliver(): void {
    if (this.epochDue) return this.#replaceStream();
    const waiting = [...this.#hosted.values()].filter((h) => h.queue.length > 0);
    if (waiting.length === 0) return;
    const hosted = this.#random.pick(waiting);
    for (const message of hosted.queue.splice(0, 1 + this.#random.int(4))) {
      this.#handler?.onStored(hosted.key, message);
    }
  }

  /** Answers one of the node's requests. */
  answer(): void {
    const index = this.#random.int(this.#pending.length);
    const [next] = this.#pending.splice(index, 1);
    next?.();
  }

  disconnect(): void {
    this.connected = false;
    this.#floor = undefined;
    for (const hosted of this.#hosted.values()) {
      if (hosted.queue.length === 0) continue;
      hosted.queue.length = 0;
      hosted.lossy = true;
    }
    this.#handler?.onConnected(false);
  }

  /** The cluster is back: what was lost meanwhile is looked for. */
  connect(): void {
    this.connected = true;
    this.#handler?.onConnected(true);
    this.#tellBehind([...this.#hosted.values()]);
  }

  /** Compares what was handed over with the stream, and then knows up to where this node has everything. */
  audit(): void {
    if (!this.connected || this.epochDue) return;
    const hosted = [...this.#hosted.values()];
    if (hosted.some((h) => h.opening || h.queue.length > 0)) return;
    this.#tellBehind(hosted);
    this.#floor = this.#store.head;
  }

  /** Where nothing is on its way any more, what is lost is known by the newest offset alone. */
  #tellBehind(hosted: readonly Hosted[]): void {
    for (const interest of hosted) {
      if (!interest.lossy || interest.opening || interest.queue.length > 0) continue;
      interest.lossy = false;
      this.#handler?.onBehind(interest.key, this.#newestOf(interest.filters));
    }
  }

  #newestOf(filters: readonly string[]): number {
    const { epoch, offset } = this.#store.head;
    return this.#store.between(epoch, filters, 0, offset).at(-1)?.offset ?? 0;
  }

  #replaceStream(): void {
    this.epochDue = false;
    this.#floor = undefined;
    for (const hosted of this.#hosted.values()) {
      hosted.queue.length = 0;
      hosted.lossy = false;
    }
    this.#handler?.onEpoch(namespace, this.#store.head);
  }

  #later<T>(answer: () => T, undo?: () => void): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#pending.push(() => {
        try {
          if (!this.connected || this.#chance(this.#faults.failed)) throw unavailable('this time it fails');
          resolve(answer());
        } catch (error) {
          undo?.();
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      });
    });
  }

  /** An engine does not answer for a stream that its handler was not told of; a page of history says itself what it is of. */
  #demandTold(): void {
    if (this.epochDue) throw unavailable('the stream was replaced meanwhile');
  }

  #chance(percent: number): boolean {
    return this.#random.int(100) < percent;
  }
}
