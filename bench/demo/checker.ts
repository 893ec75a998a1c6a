import { canonicalJson, isDurable, matchedTopics } from './matching.js';
import { align } from './sequence.js';
import type { DemoUser, FeedEvent } from './traffic.js';
import {
  add,
  describe,
  isFault,
  noCounts,
  tally,
  type CodecName,
  type Counts,
  type Kind,
  type Verdict,
} from './verdict.js';

/**
 * Works out what every user is owed from the two data files alone, takes down what arrives, and compares. It shares no code with the broker
 * or its protocol, so that a fault in either cannot hide in both.
 *
 * What is owed:
 * - durable topics: every message of every topic that one of the user's filters matches, once, in the order of the feed, absent or not;
 * - live topics: the same, but a message that was published while the user was away may be missing. "Away" starts
 *   `inFlightMs` before the cut, since what was on its way then is neither sure to have come nor sure to be lost, and ends when
 *   every topic of the new connection has been answered with `subscribed`;
 * - direct messages: every one, once, in the order of the feed. They come at least once and have an id to de-duplicate by. A message that comes
 *   again is allowed, and counted as redelivered, only on a later connection and only if its acknowledgement had not been confirmed: a `pong`
 *   to a `ping` sent after the `ack`, on the same connection. Again on the same connection, or after the confirmation, it is "twice".
 *
 * A message is known by its place in the sequence of its topic, not by its value: two that are equal are still two.
 * A durable message whose offset the user has already had, on whichever connection, is "twice".
 */

/** How long before a cut a live message may have been on its way. */
export const inFlightMs = 2_000;

/** What one user was sent on one topic: the values in order of arrival, without those whose offset came before. */
interface TopicLog {
  readonly values: number[];
  readonly offsets: Set<number>;
  highest: number;
  repeated: number;
  /** How often an offset was below one that had already come. */
  descents: number;
}

interface UserLog {
  readonly codec: CodecName;
  /** The topics of the feed that the user's filters match. */
  readonly owed: ReadonlySet<string>;
  readonly topics: Map<string, TopicLog>;
  readonly direct: { values: number[]; repeated: number; withoutId: number; redelivered: number };
  readonly directIds: Map<number, { connection: number; confirmed: boolean }>;
  readonly absences: { cutAt: number; backAt: number }[];
}

/** What the feed holds for one topic or user, in order: indexes of its events, and their values as numbers. */
interface Sequence {
  readonly events: number[];
  readonly values: number[];
}

export class Checker {
  readonly #valueNumbers = new Map<string, number>();
  /** The same by plain JSON: a shortcut, since keys mostly come in the order they were sent in. */
  readonly #shortcuts = new Map<string, number>();
  readonly #topics = new Map<string, Sequence>();
  readonly #directs = new Map<string, Sequence>();
  readonly #publishedAt = new Map<number, number>();
  readonly #logs = new Map<string, UserLog>();
  /** What has arrived so far, repetitions included (direct: by id). `confirmed`: acknowledged direct messages. */
  readonly arrived = { durable: 0, live: 0, direct: 0, confirmed: 0 };

  /** @param codecOf which codec the user at an index of `users` connects with */
  constructor(users: readonly DemoUser[], feed: readonly FeedEvent[], codecOf: (index: number) => CodecName) {
    for (const [i, event] of feed.entries()) {
      const [sequences, key] =
        event.kind === 'publish' ? [this.#topics, event.topic] : [this.#directs, event.user];
      const sequence = sequences.get(key) ?? { events: [], values: [] };
      sequence.events.push(i);
      sequence.values.push(this.#valueOf(event.data));
      sequences.set(key, sequence);
    }
    for (const [i, each] of users.entries()) {
      this.#logs.set(each.user, {
        codec: codecOf(i),
        owed: matchedTopics(each.topics, this.#topics.keys()),
        topics: new Map(),
        direct: { values: [], repeated: 0, withoutId: 0, redelivered: 0 },
        directIds: new Map(),
        absences: [],
      });
    }
  }

  /** Event `index` of the feed is about to be published. Times are in ms of one monotonic clock. */
  publishing(index: number, at: number): void {
    this.#publishedAt.set(index, at);
  }

  cut(user: string, at: number): void {
    this.#log(user).absences.push({ cutAt: at, backAt: Infinity });
  }

  back(user: string, at: number): void {
    const absence = this.#log(user).absences.at(-1);
    if (absence !== undefined) absence.backAt = at;
  }

  /** A topic message arrived. `offset` on durable topics. */
  message(user: string, topic: string, data: unknown, offset: number | undefined): void {
    const { topics } = this.#log(user);
    const seen = topics.get(topic) ?? {
      values: [],
      offsets: new Set(),
      highest: -1,
      repeated: 0,
      descents: 0,
    };
    topics.set(topic, seen);
    this.arrived[kindOf(topic)]++;
    if (offset !== undefined) {
      if (seen.offsets.has(offset)) {
        seen.repeated++;
        return;
      }
      seen.offsets.add(offset);
      if (offset < seen.highest) seen.descents++;
      seen.highest = Math.max(seen.highest, offset);
    }
    seen.values.push(this.#valueOf(data));
  }

  /** A direct message arrived on the user's `connection`-th connection. */
  direct(user: string, id: number | undefined, data: unknown, connection: number): void {
    const log = this.#log(user);
    if (id === undefined) {
      log.direct.withoutId++;
      return;
    }
    const before = log.directIds.get(id);
    if (before === undefined) {
      log.directIds.set(id, { connection, confirmed: false });
      log.direct.values.push(this.#valueOf(data));
      this.arrived.direct++;
    } else if (before.confirmed || before.connection === connection) log.direct.repeated++;
    else {
      before.connection = connection;
      log.direct.redelivered++;
    }
  }

  /** The node is known to have taken the acknowledgement of these ids. */
  confirmed(user: string, ids: readonly number[]): void {
    for (const id of ids) {
      const entry = this.#log(user).directIds.get(id);
      if (entry === undefined || entry.confirmed) continue;
      entry.confirmed = true;
      this.arrived.confirmed++;
    }
  }

  /** How much has to arrive at the least, given the absences so far. */
  owed(): Record<Kind, number> {
    const total = { durable: 0, live: 0, direct: 0 };
    for (const [user, log] of this.#logs) {
      for (const topic of log.owed) {
        total[kindOf(topic)] += this.#sequence(topic).values.length - this.#mayMiss(topic, log).size;
      }
      total.direct += this.#directs.get(user)?.values.length ?? 0;
    }
    return total;
  }

  verdict(): Verdict {
    const byCodec = () => ({ json: noCounts(), msgpack: noCounts() });
    const counts = { durable: byCodec(), live: byCodec(), direct: byCodec() };
    const faults: string[] = [];
    let redelivered = 0;
    const enter = (kind: Kind, log: UserLog, name: string, found: Counts) => {
      add(counts[kind][log.codec], found);
      if (isFault(found)) faults.push(`${name}: ${describe(found)}`);
    };
    for (const [user, log] of this.#logs) {
      for (const topic of new Set([...log.owed, ...log.topics.keys()])) {
        enter(kindOf(topic), log, `${user} ${topic}`, this.#judgeTopic(topic, log));
      }
      enter('direct', log, `${user} direct`, this.#judgeDirect(user, log));
      redelivered += log.direct.redelivered;
    }
    return { ok: faults.length === 0, counts, redelivered, faults };
  }

  #judgeTopic(topic: string, log: UserLog): Counts {
    const expected = log.owed.has(topic) ? this.#sequence(topic).values : [];
    const mayMiss = log.owed.has(topic) ? this.#mayMiss(topic, log) : new Set<number>();
    const seen = log.topics.get(topic);
    const counts = tally(expected.length, mayMiss.size, align(expected, seen?.values ?? [], mayMiss));
    counts.twice += seen?.repeated ?? 0;
    // Equal messages that changed places show in their offsets only.
    counts.outOfOrder = Math.max(counts.outOfOrder, seen?.descents ?? 0);
    return counts;
  }

  #judgeDirect(user: string, log: UserLog): Counts {
    const expected = this.#directs.get(user)?.values ?? [];
    const counts = tally(expected.length, 0, align(expected, log.direct.values));
    counts.twice += log.direct.repeated;
    counts.foreign += log.direct.withoutId;
    return counts;
  }

  #log(user: string): UserLog {
    const log = this.#logs.get(user);
    if (log === undefined) throw new Error(`no user ${user} in the data`);
    return log;
  }

  #sequence(topic: string): Sequence {
    return this.#topics.get(topic) ?? { events: [], values: [] };
  }

  /** A number for each different value. */
  #valueOf(data: unknown): number {
    const plain = JSON.stringify(data);
    const known = this.#shortcuts.get(plain);
    if (known !== undefined) return known;
    const text = canonicalJson(data);
    const number = this.#valueNumbers.get(text) ?? this.#valueNumbers.size;
    this.#valueNumbers.set(text, number);
    this.#shortcuts.set(plain, number);
    return number;
  }

  /** Places in the sequence of a live topic that were published around or during an absence of the user. */
  #mayMiss(topic: string, log: UserLog): Set<number> {
    const places = new Set<number>();
    if (isDurable(topic) || log.absences.length === 0) return places;
    for (const [place, event] of this.#sequence(topic).events.entries()) {
      const at = this.#publishedAt.get(event);
      if (at === undefined) continue;
      if (log.absences.some(({ cutAt, backAt }) => at > cutAt - inFlightMs && at < backAt)) places.add(place);
    }
    return places;
  }
}

function kindOf(topic: string): 'durable' | 'live' {
  return isDurable(topic) ? 'durable' : 'live';
}
