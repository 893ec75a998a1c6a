import { OrderedList } from './ordered-list.js';
import { sessionTtlSec, type DirectMessage, type SessionRecord } from './sessions.js';

export interface UserRecord {
  readonly userId: string;
  readonly sessions: Map<string, LivingSession>;
  /** By id, which is the order of their coming. */
  readonly queue: Map<number, QueuedMessage>;
  /** When the first of the queue may expire, ms: never later than it does. */
  nextExpiry: number;
  /** The newest direct id; 0 when there was none since the record was made. */
  newest: number;
  /** Ids of this record are greater than this. */
  readonly idBase: number;
  /** While it has sessions: its place among the users online. */
  online: OnlineUser | undefined;
}

export interface LivingSession {
  readonly user: UserRecord;
  readonly record: SessionRecord;
  readonly expires: number;
}

export interface QueuedMessage extends DirectMessage {
  readonly expires: number;
}

export interface OnlineUser {
  readonly place: number;
  readonly userId: string;
  /** Whether the user has gone offline since; coming back makes a new entry. */
  gone: boolean;
}

export interface UserTableSizes {
  readonly users: number;
  readonly sessions: number;
  readonly messages: number;
}

/** Records that each write looks at for messages that have expired unread: all are seen in time, at a constant cost. */
const sweptPerWrite = 4;

/**
 * The table behind both stores. A record without sessions and messages is dropped at once. So that a user's direct
 * ids never go down even then, a new record counts on from the greatest id of all dropped ones, and the first from the
 * time of start: a client that remembers ids meets none again, neither after a restart.
 */
export class UserTable {
  readonly now: () => number;
  readonly #users = new Map<string, UserRecord>();
  /** All sessions by their expiry: a refreshed one goes to the end. */
  readonly #sessions = new Set<LivingSession>();
  readonly #online = new OrderedList<OnlineUser>((user) => user.place);
  #onlineCount = 0;
  #places = 0;
  #idBase: number;
  #sweep: Iterator<UserRecord> | undefined;

  constructor(now: () => number) {
    this.now = now;
    this.#idBase = now();
  }

  get onlineCount(): number {
    return this.#onlineCount;
  }

  /** Places given so far, which bounds what a cursor can be. */
  get places(): number {
    return this.#places;
  }

  /** The user's record without expired messages, if there is one. */
  find(userId: string): UserRecord | undefined {
    const user = this.#users.get(userId);
    if (user !== undefined) this.#expireQueue(user);
    return this.#users.get(userId);
  }

  /** The user's record, made if need be. The caller puts something in. */
  obtain(userId: string): UserRecord {
    const known = this.find(userId);
    if (known !== undefined) return known;
    const user = {
      userId,
      sessions: new Map<string, LivingSession>(),
      queue: new Map<number, QueuedMessage>(),
      nextExpiry: Infinity,
      newest: 0,
      idBase: this.#idBase,
      online: undefined,
    };
    this.#users.set(userId, user);
    return user;
  }

  /** Adds or replaces a session, which then lives for a full TTL. */
  putSession(record: SessionRecord): UserRecord {
    const user = this.obtain(record.userId);
    const earlier = user.sessions.get(record.id);
    if (earlier !== undefined) this.#sessions.delete(earlier);
    const session = { user, record: { ...record }, expires: this.now() + sessionTtlSec * 1000 };
    this.#sessions.add(session);
    user.sessions.set(record.id, session);
    if (user.online === undefined) {
      user.online = { place: ++this.#places, userId: user.userId, gone: false };
      this.#online.push(user.online);
      this.#onlineCount += 1;
    }
    return user;
  }

  removeSession(user: UserRecord, sessionId: string): void {
    const session = user.sessions.get(sessionId);
    if (session === undefined) return;
    user.sessions.delete(sessionId);
    this.#sessions.delete(session);
    if (user.sessions.size === 0) this.#goOffline(user);
    this.dropIfEmpty(user);
  }

  /** Ends the sessions whose time is over, oldest first: O(1) when there are none. */
  expireSessions(): void {
    const now = this.now();
    for (const session of this.#sessions) {
      if (session.expires > now) return;
      this.removeSession(session.user, session.record.id);
    }
  }

  /** Looks at a few records for messages that nobody reads any more. */
  sweep(): void {
    for (let i = 0; i < sweptPerWrite; i++) {
      this.#sweep ??= this.#users.values();
      const next = this.#sweep.next();
      if (next.done === true) {
        this.#sweep = undefined;
        return;
      }
      this.#expireQueue(next.value);
    }
  }

  dropIfEmpty(user: UserRecord): void {
    if (user.sessions.size > 0 || user.queue.size > 0) return;
    this.#idBase = Math.max(this.#idBase, user.newest);
    if (this.#users.get(user.userId) === user) this.#users.delete(user.userId);
  }

  /** Users online in the order of their coming, those that have gone among them, after a place; `visit` ends it with false. Returns whether it came to the end. */
  scanOnline(afterPlace: number, visit: (user: OnlineUser) => boolean): boolean {
    for (let i = this.#online.indexAfter(afterPlace); i < this.#online.length; i++) {
      const user = this.#online.at(i);
      if (user !== undefined && !visit(user)) return false;
    }
    return true;
  }

  clear(): void {
    for (const session of this.#sessions) this.removeSession(session.user, session.record.id);
    this.#users.clear();
  }

  sizes(): UserTableSizes {
    let messages = 0;
    for (const user of this.#users.values()) messages += user.queue.size;
    return { users: this.#users.size, sessions: this.#sessions.size, messages };
  }

  #goOffline(user: UserRecord): void {
    if (user.online === undefined) return;
    user.online.gone = true;
    user.online = undefined;
    this.#onlineCount -= 1;
    const gone = this.#online.length - this.#onlineCount;
    if (gone > 64 && gone > this.#onlineCount) this.#online.retain((other) => !other.gone);
  }

  #expireQueue(user: UserRecord): void {
    const now = this.now();
    if (now < user.nextExpiry) return;
    user.nextExpiry = Infinity;
    for (const message of user.queue.values()) {
      if (message.expires <= now) user.queue.delete(message.id);
      else user.nextExpiry = Math.min(user.nextExpiry, message.expires);
    }
    this.dropIfEmpty(user);
  }
}

/** What waits in a record from which expired messages were removed, with an id greater than `after`. */
export function pendingOf(user: UserRecord, after: number): DirectMessage[] {
  const pending: DirectMessage[] = [];
  for (const { id, payload } of user.queue.values()) {
    if (id > after) pending.push({ id, payload });
  }
  return pending;
}
