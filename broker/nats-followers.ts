import { contains } from '../protocol/topic.js';
import { NatsFollower, type NatsFollowersParts } from './nats-follower.js';

/** Consumers of one namespace on one node; beyond it one consumer reads the whole stream for all of them … */
const followersMax = 32;
/** … until there are so few that they are worth their own again. */
const followersAgain = followersMax / 2;
/** Comparing more filters than this with each other takes too long; there would be too many consumers anyway. */
const comparedMax = 256;

/**
 * Feeds durable patterns from stream order: one consumer for each maximal pattern, or a single one for the namespace when there are many. When
 * interests move from one consumer to another, the new one begins where the old one was; what comes twice is for the receiver to drop.
 */
export class NatsFollowers {
  readonly #parts: NatsFollowersParts;
  readonly #whole: string;
  readonly #followers = new Map<string, NatsFollower>();
  readonly #byKey = new Map<string, NatsFollower>();

  constructor(parts: NatsFollowersParts) {
    this.#parts = parts;
    this.#whole = `${parts.stream.namespace}.>`;
  }

  /** What is read from the stream, for an operator and for tests. */
  get filters(): string[] {
    return [...this.#followers.keys()];
  }

  /** Lets an interest ride on a consumer that covers it, from now on. False when there is none. */
  join(key: string, filters: readonly string[]): boolean {
    const wanted = this.#wantedBy(filters);
    const found = this.#covering(wanted);
    if (found === undefined) return false;
    this.#assign(key, wanted, found);
    return true;
  }

  /**
   * Follows an interest that could not join: everything stored after `after`, and perhaps a little from before.
   * @throws BrokerError `unavailable`; the caller removes the key
   */
  async add(key: string, filters: readonly string[], after: number): Promise<void> {
    const wanted = this.#wantedBy(filters);
    const found = this.#covering(wanted);
    if (found !== undefined) return this.#ride(key, wanted, found, after);
    const left = this.filters.filter((filter) => !contains(wanted, filter)).length;
    const filter = left >= followersMax ? this.#whole : wanted;
    await this.#launch(filter, after, new Map([[key, wanted]]));
  }

  remove(key: string): void {
    const follower = this.#byKey.get(key);
    if (follower === undefined) return;
    this.#byKey.delete(key);
    follower.keys.delete(key);
    const wanted = new Set(follower.keys.values());
    if (wanted.has(follower.filter)) return;
    const others = this.#followers.size - 1;
    const maximalOnes = wanted.size > comparedMax ? [this.#whole] : maximal([...wanted]);
    if (follower.filter === this.#whole && maximalOnes.length > followersAgain) return;
    this.#drop(follower);
    for (const [k, w] of follower.keys) {
      const found = this.#covering(w);
      if (found !== undefined) this.#ride(k, w, found, follower.last).catch(this.#parts.onFault);
    }
    const alone = [...follower.keys].filter(([k]) => !this.#byKey.has(k));
    const filters = maximalOnes.filter((filter) => alone.some(([, w]) => contains(filter, w)));
    for (const filter of filters.length + others > followersMax ? [this.#whole] : filters) {
      const keys = alone.filter(([k, w]) => !this.#byKey.has(k) && contains(filter, w));
      this.#launch(filter, follower.last, new Map(keys)).catch(this.#parts.onFault);
    }
  }

  /** The connection is back: what came meanwhile was lost. */
  resume(): void {
    for (const follower of this.#followers.values()) follower.start(follower.last).catch(this.#parts.onFault);
  }

  /** The stream was replaced: everything goes on at its new head. */
  async restart(after: number): Promise<void> {
    await Promise.all([...this.#followers.values()].map((follower) => follower.start(after)));
  }

  stop(): void {
    for (const follower of [...this.#followers.values()]) this.#drop(follower);
  }

  /** Several filters want a newer server: a group reads the whole stream. */
  #wantedBy(filters: readonly string[]): string {
    const [only, ...others] = filters;
    return only !== undefined && others.length === 0 ? only : this.#whole;
  }

  #covering(filter: string): NatsFollower | undefined {
    for (const follower of this.#followers.values()) if (contains(follower.filter, filter)) return follower;
    return undefined;
  }

  #assign(key: string, wanted: string, follower: NatsFollower): void {
    follower.keys.set(key, wanted);
    this.#byKey.set(key, follower);
  }

  /** Joins a consumer that may be past the place from which the interest needs it: then it goes back there. */
  async #ride(key: string, wanted: string, follower: NatsFollower, after: number): Promise<void> {
    this.#assign(key, wanted, follower);
    if (follower.last > after) await follower.start(after);
  }

  /** Starts a consumer, which takes over from those that it contains. */
  async #launch(filter: string, after: number, keys: ReadonlyMap<string, string>): Promise<void> {
    const follower = new NatsFollower(this.#parts, filter);
    let from = after;
    for (const other of [...this.#followers.values()]) {
      if (!contains(filter, other.filter)) continue;
      from = Math.min(from, other.last);
      this.#drop(other);
      for (const [key, wanted] of other.keys) this.#assign(key, wanted, follower);
    }
    for (const [key, wanted] of keys) this.#assign(key, wanted, follower);
    this.#followers.set(filter, follower);
    await follower.start(from);
  }

  #drop(follower: NatsFollower): void {
    follower.stop();
    this.#followers.delete(follower.filter);
    for (const key of follower.keys.keys()) this.#byKey.delete(key);
  }
}

/** Those that none of the others contains. */
function maximal(filters: readonly string[]): string[] {
  return filters.filter((filter) => !filters.some((other) => other !== filter && contains(other, filter)));
}
