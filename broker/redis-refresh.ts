import { groupBy } from './group-by.js';
import { onlineShards, slotOf } from './redis-keys.js';
import type { RedisLink } from './redis-link.js';
import type { OnlineList, OnlineUser } from './redis-online.js';
import { listOf, livesUntil, numberOf, writeSession } from './redis-records.js';
import type { RedisUserKeys } from './redis-user-keys.js';
import { sessionTtlSec, type SessionRecord } from './sessions.js';

/** Users that one call extends: enough to share what a call costs, few enough to hold up nobody (about 1 ms of the server). */
const usersPerCall = 100;
/** ms for which users are extended one by one after a server has refused to do it together. */
const aloneMs = 60_000;

interface User extends OnlineUser {
  readonly slot: number;
  /** As the script takes them. */
  readonly args: readonly string[];
}

type Answers = Map<string, number | Error>;

/**
 * Extends the records of sessions. A node does that for each of its sessions every few minutes for as long as it lives, so it is most of what quiet
 * sessions cost. Users on one server share a call, although their keys lie in different slots: the script is told only the keys of the first one
 * as its keys. Redis checks each key that a script uses, so a user whose slot has moved meanwhile is refused, and extended by a call of his own.
 */
export class RedisRefresh {
  readonly #link: RedisLink;
  readonly #shared: RedisUserKeys;
  readonly #online: OnlineList;
  #aloneUntil = -Infinity;

  constructor(link: RedisLink, shared: RedisUserKeys, online: OnlineList) {
    this.#link = link;
    this.#shared = shared;
    this.#online = online;
  }

  /** See `SessionStore.refresh`. */
  async run(sessions: readonly SessionRecord[]): Promise<Answers> {
    const answers: Answers = new Map();
    const users = this.#usersOf(sessions);
    await Promise.all(this.#groups(users).map((group) => this.#refreshGroup(group, answers)));
    const done = users.filter(({ userId }) => typeof answers.get(userId) === 'number');
    const shards = [...groupBy(done, ({ slot }) => slot % onlineShards)];
    await Promise.all(shards.map(([shard, listed]) => this.#list(shard, listed, answers)));
    return answers;
  }

  #usersOf(sessions: readonly SessionRecord[]): User[] {
    const now = this.#shared.now();
    return [...groupBy(sessions, ({ userId }) => userId)].map(([userId, own]) => {
      const args: string[] = [];
      let until = 0;
      for (const session of own) {
        const sessionUntil = livesUntil(session, now);
        until = Math.max(until, sessionUntil);
        // A user has his name with his first session only.
        args.push(args.length === 0 ? userId : '', session.id, writeSession(session, sessionUntil));
      }
      return { userId, until, slot: slotOf(userId), args };
    });
  }

  /** Users that are extended together. */
  #groups(users: readonly User[]): User[][] {
    const perCall = performance.now() < this.#aloneUntil ? 1 : usersPerCall;
    return [...groupBy(users, ({ slot }) => this.#link.serverOf(slot)).values()].flatMap((group) =>
      Array.from({ length: Math.ceil(group.length / perCall) }, (_, i) =>
        group.slice(i * perCall, (i + 1) * perCall),
      ),
    );
  }

  async #refreshGroup(group: readonly User[], answers: Answers): Promise<void> {
    const refused = await this.#call(group, answers);
    // A server that minds keys it was not told of refuses all but the first.
    if (group.length > 2 && refused.length === group.length - 1) {
      this.#aloneUntil = performance.now() + aloneMs;
    }
    await Promise.all(refused.map((user) => this.#call([user], answers)));
  }

  /** Answers those whom Redis refused to extend together with others. */
  async #call(group: readonly User[], answers: Answers): Promise<readonly User[]> {
    const { keys } = this.#shared;
    try {
      const reply = await this.#link.script('refresh', this.#shared.keysOf(group[0]!.userId), [
        sessionTtlSec,
        keys.session(''),
        keys.queue(''),
        ...group.flatMap(({ args }) => args),
      ]);
      const [now, ...newest] = listOf(reply);
      this.#shared.learnClock(numberOf(now));
      return group.filter(({ userId }, i) => {
        if (newest[i] === null) return true;
        answers.set(userId, numberOf(newest[i]));
        return false;
      });
    } catch (error) {
      fail(group, error, answers);
      return [];
    }
  }

  async #list(shard: number, users: readonly User[], answers: Answers): Promise<void> {
    try {
      await this.#online.extend(shard, users);
    } catch (error) {
      fail(users, error, answers);
    }
  }
}

function fail(users: readonly User[], error: unknown, answers: Answers): void {
  const cause = error instanceof Error ? error : new Error('no error was thrown', { cause: error });
  for (const { userId } of users) answers.set(userId, cause);
}
