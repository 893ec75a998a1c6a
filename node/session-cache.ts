import type { SessionRecord } from '../broker/sessions.js';

const cacheMs = 30_000;
const usersMax = 10_000;

/**
 * Where users were found connected a moment ago, for messages that are not worth a read of the store each. Bounded: the user that was asked for
 * longest ago goes first. Users without sessions are not remembered, or one who has just come would be missed.
 */
export class SessionCache {
  readonly #now: () => number;
  readonly #usersMax: number;
  readonly #users = new Map<
    string,
    { readonly sessions: readonly SessionRecord[]; readonly until: number }
  >();

  constructor(now: () => number = Date.now, max = usersMax) {
    this.#now = now;
    this.#usersMax = max;
  }

  get(userId: string): readonly SessionRecord[] | undefined {
    const entry = this.#users.get(userId);
    if (entry === undefined) return undefined;
    this.#users.delete(userId);
    if (entry.until <= this.#now()) return undefined;
    this.#users.set(userId, entry);
    return entry.sessions;
  }

  put(userId: string, sessions: readonly SessionRecord[]): void {
    this.#users.delete(userId);
    if (sessions.length === 0) return;
    for (const eldest of this.#users.keys()) {
      if (this.#users.size < this.#usersMax) break;
      this.#users.delete(eldest);
    }
    this.#users.set(userId, { sessions, until: this.#now() + cacheMs });
  }

  drop(userId: string): void {
    this.#users.delete(userId);
  }
}
