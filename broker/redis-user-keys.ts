import { createRedisKeys, type RedisKeys } from './redis-keys.js';
import type { RedisLink } from './redis-link.js';
import { readMessage, readSession } from './redis-records.js';
import { nodeOfSession, type DirectMessage, type SessionRecord } from './sessions.js';

export interface RedisUsersOptions {
  /** Not closed by the stores: whoever opened it does. */
  readonly link: RedisLink;
  /** In front of every key: one prefix, one tenant. */
  readonly prefix: string;
  /** Unacknowledged messages of one user. */
  readonly queueMax?: number;
  /** Nodes whose sessions are left out of what is read. */
  readonly isDead?: (nodeId: string) => boolean;
  /** Told of each value that was met and does not parse; it stays as it is. */
  readonly onUnreadable?: (key: string, field: string) => void;
}

/** What both stores know of the keys and their values. */
export class RedisUserKeys {
  readonly keys: RedisKeys;
  readonly #isDead: (nodeId: string) => boolean;
  readonly #onUnreadable: (key: string, field: string) => void;
  #clockAheadMs = 0;

  constructor({ prefix, isDead, onUnreadable }: RedisUsersOptions) {
    this.keys = createRedisKeys(prefix);
    this.#isDead = isDead ?? (() => false);
    this.#onUnreadable = onUnreadable ?? (() => undefined);
  }

  /** The keys of what is written of a user at a connect and a refresh. */
  keysOf(userId: string): [session: string, queue: string] {
    return [this.keys.session(userId), this.keys.queue(userId)];
  }

  /** The clock of Redis, as far as known: expiries are written by many nodes and compared there. ms since the Unix epoch. */
  now(): number {
    return Date.now() + this.#clockAheadMs;
  }

  /** Takes what a script answered as its time. */
  learnClock(redisMs: number): void {
    this.#clockAheadMs = redisMs - Date.now();
  }

  /** The living sessions among the fields of a user's hash, without those of dead nodes. */
  readSessions(userId: string, pairs: readonly (readonly [string, string])[]): SessionRecord[] {
    const now = this.now();
    const sessions: SessionRecord[] = [];
    for (const [id, text] of pairs) {
      const stored = readSession(userId, id, text);
      if (stored === undefined) this.#onUnreadable(this.keys.session(userId), id);
      else if (stored.until > now && !this.#isDead(nodeOfSession(id))) sessions.push(stored.record);
    }
    return sessions;
  }

  /** Messages, oldest first. Fields that are no ids belong to the scripts or to others. */
  readMessages(userId: string, pairs: readonly (readonly [string, string])[]): DirectMessage[] {
    const messages: DirectMessage[] = [];
    for (const [field, text] of pairs) {
      const message = readMessage(Number(field), text);
      if (message === undefined) this.#onUnreadable(this.keys.queue(userId), field);
      else messages.push(message);
    }
    return messages.sort((a, b) => a.id - b.id);
  }
}
