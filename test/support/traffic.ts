import { callApi } from './cluster.js';
import { Signal } from './signal.js';

export interface TrafficOptions {
  readonly topics: readonly string[];
  /** Messages a second over all topics. */
  readonly rate: number;
  /** At most one message of a topic is under way, so that what is refused and tried again keeps its place. */
  readonly oneByOne?: boolean;
  /** Where to publish next. */
  readonly port: () => number;
}

/** Messages of one call; each of another topic or in order. */
const callMs = 50;

/**
 * Publishes whole numbers that count up from 0 on each topic, at a steady rate, until it is stopped. A call that fails is made again with the
 * same ids until it is answered, so `sent` are exactly those that are stored.
 */
export class Traffic {
  readonly sent = new Map<string, number>();
  readonly signal = new Signal();
  /** Calls that were refused or had no answer, by status (0: none). */
  readonly refused = new Map<number, number>();
  total = 0;
  readonly #options: TrafficOptions;
  #running: Promise<void> | undefined;
  #stopping = false;

  constructor(options: TrafficOptions) {
    this.#options = options;
    for (const topic of options.topics) this.sent.set(topic, 0);
  }

  start(): this {
    this.#running = this.#run();
    return this;
  }

  /** Resolves when all that was begun is stored. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#running;
  }

  /** Resolves when as many more have been stored. */
  more(count: number): Promise<void> {
    const until = this.total + count;
    return this.signal.until(`${count} more messages`, () => this.total >= until, 60_000);
  }

  async #run(): Promise<void> {
    const { oneByOne = false, rate, topics } = this.#options;
    const batchMax = oneByOne ? topics.length : 1000;
    const start = performance.now();
    for (let due = 0; !this.#stopping;) {
      const batch: { topic: string; data: number; id: string }[] = [];
      const target = ((performance.now() - start) / 1000) * rate;
      // After an outage it goes on at the same rate instead of making up for it.
      if (target - due > rate) due = target - rate * 0.05;
      for (; due < target && batch.length < batchMax; due++) {
        const topic = topics[Math.floor(due) % topics.length]!;
        const number = this.sent.get(topic)!;
        this.sent.set(topic, number + 1);
        batch.push({ topic, data: number, id: String(number) });
      }
      if (batch.length > 0) await this.#publish(batch);
      await new Promise((resolve) => setTimeout(resolve, callMs));
    }
  }

  async #publish(batch: readonly { topic: string; data: number; id: string }[]): Promise<void> {
    let left = batch;
    while (left.length > 0) {
      const results = await this.#try(left);
      // What comes after a failure on the same topic waits for it, or the order would change.
      const failed = new Set<string>();
      left = left.filter((message, i) => {
        const result = results?.[i];
        if (result?.error === undefined && result !== undefined) return false;
        failed.add(message.topic);
        return true;
      });
      if (left.length > 0) await new Promise((resolve) => setTimeout(resolve, callMs));
    }
    this.total += batch.length;
    this.signal.notify();
  }

  async #try(messages: readonly unknown[]): Promise<readonly { error?: unknown }[] | undefined> {
    try {
      const { body, status } = await callApi<{ results?: { error?: unknown }[] }>(
        this.#options.port(),
        'POST',
        '/v1/publish',
        { messages },
      );
      const refused =
        status !== 200 ? status : body.results?.some(({ error }) => error !== undefined) ? 503 : 200;
      if (refused !== 200) this.refused.set(refused, (this.refused.get(refused) ?? 0) + 1);
      return status === 200 ? body.results : undefined;
    } catch {
      // The node is being restarted: the next call goes elsewhere.
      this.refused.set(0, (this.refused.get(0) ?? 0) + 1);
      return undefined;
    }
  }
}
