import { readFileSync } from 'node:fs';

/** One user of the data set: who it is and what it declares at the handshake. */
export interface DemoUser {
  readonly user: string;
  readonly device: string;
  readonly topics: readonly string[];
}

/** One event of the feed. `at` is in ms from the start. */
export type FeedEvent =
  | { readonly at: number; readonly kind: 'publish'; readonly topic: string; readonly data: unknown }
  | { readonly at: number; readonly kind: 'direct'; readonly user: string; readonly data: unknown };

export type FeedPublish = Extract<FeedEvent, { kind: 'publish' }>;
export type FeedDirect = Extract<FeedEvent, { kind: 'direct' }>;

/** Reads a file with one JSON value a line. @throws Error that names the line */
function readLines<T>(file: string): T[] {
  const values: T[] = [];
  for (const [i, line] of readFileSync(file, 'utf8').split('\n').entries()) {
    if (line.trim() === '') continue;
    try {
      values.push(JSON.parse(line) as T);
    } catch (cause) {
      throw new Error(`${file}:${i + 1} is not JSON`, { cause });
    }
  }
  return values;
}

export function readUsers(file: string): DemoUser[] {
  return readLines<DemoUser>(file);
}

export function readFeed(file: string): FeedEvent[] {
  return readLines<FeedEvent>(file);
}

/** A time of absence, in feed events: the user is cut before event `cut` and comes back before event `back`. */
export interface Drop {
  readonly user: string;
  readonly cut: number;
  readonly back: number;
}

/**
 * Who loses the connection and when: `percent` of the users, each once, anywhere in the feed but its first and last twentieth,
 * for 1 to an eighth of the feed's events. The same seed gives the same plan.
 */
export function planDrops(users: readonly DemoUser[], events: number, percent: number, seed: number): Drop[] {
  const random = mulberry32(seed);
  const below = (bound: number) => Math.floor(random() * bound);
  const pool = users.map((each) => each.user);
  const drops: Drop[] = [];
  for (let left = Math.round((pool.length * percent) / 100); left > 0; left--) {
    const [user] = pool.splice(below(pool.length), 1);
    if (user === undefined) break;
    const cut = Math.floor(events / 20) + below(Math.max(1, Math.floor(events * 0.9)));
    const back = Math.min(events, cut + 1 + below(Math.max(1, Math.floor(events / 8))));
    drops.push({ user, cut, back });
  }
  return drops;
}

/** A small seeded generator (public domain, Tommy Ettinger); 32 bits of state are plenty for a plan. */
function mulberry32(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
