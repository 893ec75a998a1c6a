import type { Payload } from '../protocol/payload.js';

/**
 * Who is connected where. Two engines: memory and Redis Cluster. Records expire by themselves after `sessionTtlSec` unless
 * refreshed, so nothing that crashes leaves a ghost for longer. All ids come from the caller; user ids are opaque here.
 */
export interface SessionStore {
  /** @throws BrokerError `unavailable` */
  start(): Promise<void>;

  /**
   * Records a session and marks the user online; atomic per user, idempotent. Answers what waits for the user, so that
   * a connect needs one round trip.
   * @throws BrokerError `unavailable`
   */
  register(session: SessionRecord): Promise<Registration>;

  /**
   * Extends sessions by a full TTL (registering again any that have gone) and tells the id of each user's newest direct message. Each user is on his
   * own: what goes wrong with one keeps nobody else from being extended. Never rejects.
   * @returns for each user id the newest direct id, 0 when there never was one; or why the user was not extended, `unavailable` for a BrokerError
   */
  refresh(sessions: readonly SessionRecord[]): Promise<Map<string, number | Error>>;

  /** Removes a session; the user goes offline with the last one. Unknown sessions are ignored. @throws BrokerError `unavailable` */
  remove(userId: string, sessionId: string): Promise<void>;

  /** The user's living sessions. @throws BrokerError `unavailable` */
  sessionsOf(userId: string): Promise<SessionRecord[]>;

  /** Users online in the whole cluster. @throws BrokerError `unavailable` */
  onlineCount(): Promise<number>;

  /**
   * A page of online user ids, each exactly once over a scan during which nobody comes or goes. `cursor` is opaque: '' starts, and
   * an answered '' ends. `limit` 1–1000 is a bound, not a promise: a page may hold fewer and not be the last. Only ids that start with `prefix`.
   * @throws BrokerError `invalid_frame` for a cursor that it did not make; `unavailable`
   */
  onlineUsers(cursor: string, limit: number, prefix: string): Promise<OnlinePage>;

  stop(): Promise<void>;
}

export interface SessionRecord {
  readonly userId: string;
  /** `<node id>.<counter>`: names the node as well. */
  readonly id: string;
  /** ms since the Unix epoch, kept to the second: when it connected, and when a frame last came. */
  readonly login: number;
  readonly active: number;
  readonly device?: string;
}

/** A message to one user, as it waits in the user's queue. */
export interface DirectMessage {
  readonly id: number;
  readonly payload: Payload;
}

export interface Registration {
  /** Direct messages not yet acknowledged, oldest first. */
  readonly pending: readonly DirectMessage[];
  /** The user's newest direct id so far, 0 when there never was one. */
  readonly newest: number;
}

export interface OnlinePage {
  readonly users: readonly string[];
  readonly cursor: string;
}

/** How long a record lives without a refresh. Nodes refresh after a third of it. */
export const sessionTtlSec = 600;

/** The node id inside a session id: what is before the last dot. */
export function nodeOfSession(sessionId: string): string {
  return sessionId.slice(0, sessionId.lastIndexOf('.'));
}
