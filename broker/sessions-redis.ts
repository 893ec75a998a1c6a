import { OnlineList } from './redis-online.js';
import type { RedisLink } from './redis-link.js';
import { RedisRefresh } from './redis-refresh.js';
import { listOf, livesUntil, numberOf, pairsOf, writeSession } from './redis-records.js';
import type { RedisUserKeys } from './redis-user-keys.js';
import {
  sessionTtlSec,
  type OnlinePage,
  type Registration,
  type SessionRecord,
  type SessionStore,
} from './sessions.js';

/** The session store in Redis; see `createRedisUsers`. */
export function createRedisSessions(link: RedisLink, shared: RedisUserKeys): SessionStore {
  return new RedisSessions(link, shared);
}

class RedisSessions implements SessionStore {
  readonly #link: RedisLink;
  readonly #shared: RedisUserKeys;
  readonly #online: OnlineList;
  readonly #refresh: RedisRefresh;

  constructor(link: RedisLink, shared: RedisUserKeys) {
    this.#link = link;
    this.#shared = shared;
    this.#online = new OnlineList(link, shared);
    this.#refresh = new RedisRefresh(link, shared, this.#online);
  }

  async start(): Promise<void> {
    await this.#link.start();
    const [sec, micros] = listOf(await this.#link.call('time'));
    this.#shared.learnClock(numberOf(sec) * 1000 + Math.floor(numberOf(micros) / 1000));
  }

  /** Two commands on two keys at once: one round trip. */
  async register(session: SessionRecord): Promise<Registration> {
    const { userId, id } = session;
    const until = livesUntil(session, this.#shared.now());
    const [reply] = await Promise.all([
      this.#link.script('register', this.#shared.keysOf(userId), [
        sessionTtlSec,
        id,
        writeSession(session, until),
      ]),
      this.#online.add(userId, until),
    ]);
    const [now, newest, messages] = listOf(reply);
    this.#shared.learnClock(numberOf(now));
    return {
      pending: this.#shared.readMessages(userId, pairsOf(messages)),
      newest: numberOf(newest),
    };
  }

  refresh(sessions: readonly SessionRecord[]): Promise<Map<string, number | Error>> {
    return this.#refresh.run(sessions);
  }

  async remove(userId: string, sessionId: string): Promise<void> {
    const key = this.#shared.keys.session(userId);
    const [until, left] = listOf(await this.#link.script('remove', [key], [sessionTtlSec, sessionId]));
    if (numberOf(until) > 0) await this.#online.leave(userId, numberOf(until), numberOf(left));
  }

  async sessionsOf(userId: string): Promise<SessionRecord[]> {
    const reply = await this.#link.script('sessions', [this.#shared.keys.session(userId)], []);
    const [now, fields] = listOf(reply);
    this.#shared.learnClock(numberOf(now));
    return this.#shared.readSessions(userId, pairsOf(fields));
  }

  onlineCount(): Promise<number> {
    return this.#online.count();
  }

  onlineUsers(cursor: string, limit: number, prefix: string): Promise<OnlinePage> {
    return this.#online.page(cursor, limit, prefix);
  }

  async stop(): Promise<void> {
    // The link belongs to whoever opened it; records go by themselves.
  }
}
