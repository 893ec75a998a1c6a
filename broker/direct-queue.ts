import type { Payload } from '../protocol/payload.js';
import type { DirectMessage, SessionRecord } from './sessions.js';

export type { DirectMessage } from './sessions.js';

/**
 * Direct messages that no device of the user has acknowledged yet. Two engines: memory and Redis Cluster, each over the same per-user
 * record as its `SessionStore`, so that queueing and finding the sessions is one atomic step.
 */
export interface DirectQueue {
  /**
   * Queues a message and answers the sessions to hint: atomic per user. Ids are counted up per user and never reused while the user's queue lives.
   * @param ttlSec 1 to `directTtlSecMax`; the message is gone after it.
   * @throws BrokerError `queue_full` (nothing is queued, nothing evicted); `unavailable`
   */
  push(userId: string, payload: Payload, ttlSec: number): Promise<QueuedPush>;

  /** Unexpired messages with `id > after`, oldest first. @throws BrokerError `unavailable` */
  pending(userId: string, after: number): Promise<DirectMessage[]>;

  /**
   * Removes messages that a client has handled; unknown ids are ignored.
   * @returns how many were removed
   * @throws BrokerError `unavailable`
   */
  acknowledge(userId: string, ids: readonly number[]): Promise<number>;
}

export interface QueuedPush {
  readonly id: number;
  /** The user's newest id before this one: a session that has sent it needs nothing but this message. 0: there was none. */
  readonly prev: number;
  readonly sessions: readonly SessionRecord[];
}

/** Seven days: how long a direct message waits at most, and by default. */
export const directTtlSecMax = 7 * 86_400;
/** Unacknowledged messages of one user; a push beyond it is refused. */
export const directQueueMax = 1000;
