import type { Payload } from '../protocol/payload.js';
import { directTtlSecMax, type DirectQueue, type QueuedPush } from './direct-queue.js';
import { BrokerError } from './errors.js';
import type { DirectMessage } from './sessions.js';
import { pendingOf, type UserTable } from './user-table.js';

/** The direct queue in memory; see `createMemoryUsers`. */
export function createMemoryDirectQueue(users: UserTable, queueMax: number): DirectQueue {
  return new MemoryDirectQueue(users, queueMax);
}

class MemoryDirectQueue implements DirectQueue {
  readonly #users: UserTable;
  readonly #queueMax: number;

  constructor(users: UserTable, queueMax: number) {
    this.#users = users;
    this.#queueMax = queueMax;
  }

  async push(userId: string, payload: Payload, ttlSec: number): Promise<QueuedPush> {
    this.#users.expireSessions();
    this.#users.sweep();
    const user = this.#users.obtain(userId);
    if (user.queue.size >= this.#queueMax) {
      this.#users.dropIfEmpty(user);
      throw new BrokerError('queue_full', `${this.#queueMax} messages of the user are not acknowledged`);
    }
    const prev = user.newest;
    const id = Math.max(prev, user.idBase) + 1;
    const expires = this.#users.now() + Math.min(ttlSec, directTtlSecMax) * 1000;
    user.newest = id;
    user.queue.set(id, { id, payload, expires });
    user.nextExpiry = Math.min(user.nextExpiry, expires);
    return { id, prev, sessions: [...user.sessions.values()].map(({ record }) => record) };
  }

  async pending(userId: string, after: number): Promise<DirectMessage[]> {
    const user = this.#users.find(userId);
    return user === undefined ? [] : pendingOf(user, after);
  }

  async acknowledge(userId: string, ids: readonly number[]): Promise<number> {
    this.#users.sweep();
    const user = this.#users.find(userId);
    if (user === undefined) return 0;
    let removed = 0;
    for (const id of ids) if (user.queue.delete(id)) removed += 1;
    this.#users.dropIfEmpty(user);
    return removed;
  }
}
