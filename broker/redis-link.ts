import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { Cluster } from 'ioredis';
import { unavailable } from './errors.js';
import { connectRedis, type RedisClient } from './redis-client.js';
import { describeRedisError, isPassing } from './redis-errors.js';
import type { ScriptName } from './redis-scripts.js';
import { RedisWrites } from './redis-writes.js';

/** `lost`: not reached yet, or given up after failures in a row; it is tried again all the time. */
export type RedisState = 'ready' | 'lost' | 'closed';

export interface RedisLinkOptions {
  /** `redis://` or `rediss://`, user and password in the address: one plain Redis, or some nodes of a cluster. */
  readonly urls: readonly string[];
  /** Shown by CLIENT LIST, so that an operator finds the node behind a connection. */
  readonly name?: string;
  /** How long one command may take. */
  readonly commandMsMax?: number;
  /** How long a call is retried. Longer than a replica takes to take over: `cluster-node-timeout` (2–5 s) and an election. */
  readonly retryMsMax?: number;
  /** Called at each change, with what led to it. */
  readonly onState?: (state: RedisState, cause?: unknown) => void;
}

export type RedisArg = string | number;

export const commandMsMaxDefault = 1500;
export const retryMsMaxDefault = 8000;
/** Calls in a row that failed to the end of their retries before the link counts as lost. */
const failuresMax = 3;
const retryDelayMsMax = 200;
const probeMs = 500;

/**
 * The one connection of a node to Redis. Slots that move, replicas that take over and connections that break are retried, so a call is
 * slower then but does not fail; when the time for that is over it fails with `unavailable`. While the link is lost, calls are tried once.
 */
export class RedisLink {
  readonly #options: RedisLinkOptions;
  readonly #commandMs: number;
  readonly #retryMs: number;
  readonly #closing = new AbortController();
  readonly #writes = new RedisWrites();
  #client: RedisClient | undefined;
  #state: RedisState = 'lost';
  #failures = 0;
  #opening: Promise<void> | undefined;
  #lastError: unknown;

  constructor(options: RedisLinkOptions) {
    this.#options = options;
    // Every call that waits to be retried listens.
    setMaxListeners(0, this.#closing.signal);
    this.#commandMs = options.commandMsMax ?? commandMsMaxDefault;
    this.#retryMs = options.retryMsMax ?? retryMsMaxDefault;
  }

  get state(): RedisState {
    return this.#state;
  }

  /** Undefined until it was reached for the first time. */
  get isCluster(): boolean | undefined {
    return this.#client === undefined ? undefined : this.#client instanceof Cluster;
  }

  /** The server that has a slot, as far as is known: the same text for all of one server. */
  serverOf(slot: number): string {
    return this.#client instanceof Cluster ? (this.#client.slots[slot]?.[0] ?? '') : '';
  }

  /**
   * Connects. Whoever else calls it waits for the same. After a failure it is tried on in the background.
   * @throws BrokerError `unavailable` when it was not reached within `retryMsMax`
   */
  async start(): Promise<void> {
    if (this.#state === 'closed') throw unavailable('the connection to Redis is closed');
    this.#opening ??= this.#open();
    const late = new AbortController();
    const inTime = await Promise.race([
      this.#opening.then(() => this.#client !== undefined),
      delay(this.#retryMs, false, { signal: late.signal }).catch(() => false),
    ]);
    late.abort();
    if (!inTime) throw this.#failure(this.#lastError);
  }

  /** @throws BrokerError `unavailable` */
  call(command: string, ...args: readonly RedisArg[]): Promise<unknown> {
    return this.#run((client) => client.call(command, ...args));
  }

  /**
   * Runs a script. All keys lie in one slot. `args` may depend on whether an earlier try of this call may have been carried out.
   * @throws BrokerError `unavailable`
   */
  script(
    name: ScriptName,
    keys: readonly string[],
    args: readonly RedisArg[] | ((retried: boolean) => readonly RedisArg[]),
  ): Promise<unknown> {
    return this.#run((client, retried) => {
      const commands = client as unknown as Record<ScriptName, (...all: RedisArg[]) => Promise<unknown>>;
      return commands[name](keys.length, ...keys, ...(typeof args === 'function' ? args(retried) : args));
    });
  }

  close(): Promise<void> {
    if (this.#state !== 'closed') {
      this.#setState('closed');
      this.#closing.abort();
      this.#client?.disconnect();
    }
    return this.#opening ?? Promise.resolve();
  }

  async #run(send: (client: RedisClient, retried: boolean) => Promise<unknown>): Promise<unknown> {
    const deadline = Date.now() + (this.#state === 'ready' ? this.#retryMs : 0);
    for (let tries = 0; ; tries++) {
      if (this.#client === undefined || this.#state === 'closed') throw this.#failure(this.#lastError);
      try {
        this.#writes.hold(this.#client);
        const answer = await send(this.#client, tries > 0);
        this.#failures = 0;
        if (this.#state === 'lost') this.#setState('ready');
        return answer;
      } catch (error) {
        const pause = Math.min(retryDelayMsMax, 10 * 2 ** tries);
        if (!isPassing(error)) throw this.#failure(error);
        if (Date.now() + pause > deadline) throw this.#givenUp(error);
        await this.#pause(pause);
      }
    }
  }

  #givenUp(error: unknown): Error {
    this.#lastError = error;
    this.#failures += 1;
    if (this.#failures >= failuresMax && this.#state === 'ready') {
      this.#setState('lost', error);
      void this.#probe();
    }
    return this.#failure(error);
  }

  #failure(cause: unknown): Error {
    const why = this.#state === 'closed' ? 'the connection is closed' : describeRedisError(cause);
    return unavailable(`Redis is out of reach: ${why}`, cause);
  }

  async #open(): Promise<void> {
    for (let tries = 0; this.#state !== 'closed'; tries++) {
      try {
        const options = { urls: this.#options.urls, name: this.#options.name ?? 'topicast' };
        const client = await connectRedis({ ...options, commandMsMax: this.#commandMs });
        if (this.#isClosed()) return client.disconnect();
        this.#client = client;
        this.#setState('ready');
        return;
      } catch (error) {
        this.#lastError = error;
        if (tries === 0) this.#options.onState?.('lost', error);
        await this.#pause(Math.min(1000, 50 * 2 ** tries));
      }
    }
  }

  /** Finds out by itself when Redis is back, even if nobody asks for anything. */
  async #probe(): Promise<void> {
    do await this.#pause(probeMs);
    while (this.#isLost() && !(await this.#isServing()));
    if (this.#isLost()) this.#setState('ready');
  }

  async #isServing(): Promise<boolean> {
    const client = this.#client;
    try {
      if (!(client instanceof Cluster)) return (await client?.ping()) === 'PONG';
      return (await client.cluster('INFO')).includes('cluster_state:ok');
    } catch (error) {
      this.#lastError = error;
      return false;
    }
  }

  #setState(state: RedisState, cause?: unknown): void {
    if (state === this.#state || this.#state === 'closed') return;
    this.#state = state;
    this.#failures = 0;
    this.#options.onState?.(state, cause);
  }

  #isClosed(): boolean {
    return this.#state === 'closed';
  }

  #isLost(): boolean {
    return this.#state === 'lost';
  }

  /** Ends early when the link is closed. */
  async #pause(ms: number): Promise<void> {
    // It rejects for nothing but that, and whoever paused looks at the state next.
    await delay(ms, undefined, { signal: this.#closing.signal }).catch(() => undefined);
  }
}
