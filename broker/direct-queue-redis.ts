import { randomBytes } from 'node:crypto';
import type { Payload } from '../protocol/payload.js';
import { directTtlSecMax, type DirectQueue, type QueuedPush } from './direct-queue.js';
import { BrokerError } from './errors.js';
import type { RedisLink } from './redis-link.js';
import { listOf, numberOf, pairsOf, writePayload } from './redis-records.js';
import type { RedisUserKeys } from './redis-user-keys.js';
import type { DirectMessage } from './sessions.js';

/** The direct queue in Redis; see `createRedisUsers`. */
export function createRedisDirectQueue(
  link: RedisLink,
  shared: RedisUserKeys,
  queueMax: number,
): DirectQueue {
  return new RedisDirectQueue(link, shared, queueMax);
}

class RedisDirectQueue implements DirectQueue {
  readonly #link: RedisLink;
  readonly #shared: RedisUserKeys;
  readonly #queueMax: number;

  constructor(link: RedisLink, shared: RedisUserKeys, queueMax: number) {
    this.#link = link;
    this.#shared = shared;
    this.#queueMax = queueMax;
  }

  /**
   * A try whose answer was lost is found again by its token, so that retrying queues once. After `unavailable` it is unknown whether the
   * message is in the queue.
   */
  async push(userId: string, payload: Payload, ttlSec: number): Promise<QueuedPush> {
    const { keys } = this.#shared;
    const ttlMs = Math.min(ttlSec, directTtlSecMax) * 1000;
    const token = randomBytes(6).toString('base64url');
    const body = writePayload(payload);
    const reply = await this.#link.script('push', [keys.queue(userId), keys.session(userId)], (retried) => [
      ttlMs,
      this.#queueMax,
      directTtlSecMax,
      token,
      retried ? '1' : '0',
      body,
    ]);
    const [id, prev, now, sessions] = listOf(reply);
    if (id === 0) {
      throw new BrokerError('queue_full', `${this.#queueMax} messages of the user are not acknowledged`);
    }
    this.#shared.learnClock(numberOf(now));
    return {
      id: numberOf(id),
      prev: numberOf(prev),
      sessions: this.#shared.readSessions(userId, pairsOf(sessions)),
    };
  }

  async pending(userId: string, after: number): Promise<DirectMessage[]> {
    const reply = await this.#link.script('pending', [this.#shared.keys.queue(userId)], [after]);
    return this.#shared.readMessages(userId, pairsOf(reply));
  }

  async acknowledge(userId: string, ids: readonly number[]): Promise<number> {
    if (ids.length === 0) return 0;
    return numberOf(await this.#link.script('acknowledge', [this.#shared.keys.queue(userId)], ids));
  }
}
