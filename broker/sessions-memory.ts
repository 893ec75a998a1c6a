import { BrokerError } from './errors.js';
import type { OnlinePage, Registration, SessionRecord, SessionStore } from './sessions.js';
import { pendingOf, type UserTable } from './user-table.js';

const onlinePageMax = 1000;
/** Users that one page looks at, so that a prefix which nobody has does not hold the event loop. */
const onlineScannedMax = 10_000;
const cursorSyntax = /^[1-9][0-9]{0,15}$/;

/** The session store in memory; see `createMemoryUsers`. */
export function createMemorySessions(users: UserTable): SessionStore {
  return new MemorySessions(users);
}

class MemorySessions implements SessionStore {
  readonly #users: UserTable;

  constructor(users: UserTable) {
    this.#users = users;
  }

  async start(): Promise<void> {
    // Nothing to connect to.
  }

  async register(session: SessionRecord): Promise<Registration> {
    this.#tidy();
    const user = this.#users.putSession(session);
    return { pending: pendingOf(user, 0), newest: user.newest };
  }

  async refresh(sessions: readonly SessionRecord[]): Promise<Map<string, number | Error>> {
    this.#tidy();
    const newest = new Map<string, number>();
    for (const session of sessions) {
      newest.set(session.userId, this.#users.putSession(session).newest);
    }
    return newest;
  }

  async remove(userId: string, sessionId: string): Promise<void> {
    this.#tidy();
    const user = this.#users.find(userId);
    if (user !== undefined) this.#users.removeSession(user, sessionId);
  }

  async sessionsOf(userId: string): Promise<SessionRecord[]> {
    this.#users.expireSessions();
    const user = this.#users.find(userId);
    return user === undefined ? [] : [...user.sessions.values()].map(({ record }) => record);
  }

  async onlineCount(): Promise<number> {
    this.#users.expireSessions();
    return this.#users.onlineCount;
  }

  /** The cursor is the place of the last user that was looked at. */
  async onlineUsers(cursor: string, limit: number, prefix: string): Promise<OnlinePage> {
    const after = this.#readCursor(cursor);
    this.#users.expireSessions();
    const countMax = Math.min(Math.max(1, limit), onlinePageMax);
    const page: string[] = [];
    let last = after;
    let scanned = 0;
    const ended = this.#users.scanOnline(after, (user) => {
      if (page.length >= countMax || scanned >= onlineScannedMax) return false;
      last = user.place;
      scanned += 1;
      if (!user.gone && user.userId.startsWith(prefix)) page.push(user.userId);
      return true;
    });
    return { users: page, cursor: ended ? '' : String(last) };
  }

  async stop(): Promise<void> {
    this.#users.clear();
  }

  #tidy(): void {
    this.#users.expireSessions();
    this.#users.sweep();
  }

  #readCursor(cursor: string): number {
    if (cursor === '') return 0;
    const place = cursorSyntax.test(cursor) ? Number(cursor) : Infinity;
    if (place > this.#users.places) {
      throw new BrokerError('invalid_frame', 'the cursor is not one of this list');
    }
    return place;
  }
}
