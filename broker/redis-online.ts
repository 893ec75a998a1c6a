import { BrokerError } from './errors.js';
import { onlineShardOf, onlineShards } from './redis-keys.js';
import type { RedisLink } from './redis-link.js';
import { listOf, numberOf, pairsOf } from './redis-records.js';
import type { RedisUserKeys } from './redis-user-keys.js';
import type { OnlinePage } from './sessions.js';

const onlinePageMax = 1000;
/** Members that one ZSCAN aims at. Fixed, so that a cursor means the same whatever the size of pages. */
const scanCount = 500;
/** Members that one page looks at, so that a prefix which nobody has does not take for ever. */
const scannedMax = 10_000;
const cursorSyntax = /^(\d|1[0-5])\.(0|[1-9]\d{0,19})\.([\w.:=@-]{0,128})$/;
const scanCursorMax = 2n ** 64n - 1n;

/** A place in the list: the shard, where ZSCAN reads on, and the last user already told of what it answers there. */
interface Place {
  readonly shard: number;
  readonly scan: string;
  readonly last: string;
}

/** ms after which a node looks again for users in a shard whose time is over: nobody counts them, they only take memory. */
const trimMs = 60_000;

export interface OnlineUser {
  readonly userId: string;
  /** ms since the Unix epoch. */
  readonly until: number;
}

/** Users online: sorted sets of user ids by the ms at which they are no longer, unless somebody writes them anew. */
export class OnlineList {
  readonly #link: RedisLink;
  readonly #shared: RedisUserKeys;
  /** ms since the Unix epoch, by shard. */
  readonly #trimmedAt: number[] = [];

  constructor(link: RedisLink, shared: RedisUserKeys) {
    this.#link = link;
    this.#shared = shared;
  }

  /** GT: of two devices that write at once, the later score holds whatever the order of arrival. */
  async add(userId: string, until: number): Promise<void> {
    await this.#link.call('zadd', this.#key(onlineShardOf(userId)), 'GT', until, userId);
  }

  /** Writes users of one shard anew, and drops those whose time is over now and then. */
  async extend(shard: number, users: readonly OnlineUser[]): Promise<void> {
    const entries = users.flatMap(({ until, userId }) => [until, userId]);
    const now = this.#shared.now();
    const trims = Math.abs(now - (this.#trimmedAt[shard] ?? 0)) >= trimMs;
    await Promise.all([
      this.#link.call('zadd', this.#key(shard), 'GT', ...entries),
      trims ? this.#link.call('zremrangebyscore', this.#key(shard), '-inf', now) : undefined,
    ]);
    if (trims) this.#trimmedAt[shard] = now;
  }

  /** A session that had written `until` is gone; `left` is what another one of the user wrote, 0 for none. */
  async leave(userId: string, until: number, left: number): Promise<void> {
    await this.#link.script('leave', [this.#key(onlineShardOf(userId))], [userId, until, left]);
  }

  async count(): Promise<number> {
    const after = `(${this.#shared.now()}`;
    const counts = await Promise.all(
      Array.from({ length: onlineShards }, (_, shard) =>
        this.#link.call('zcount', this.#key(shard), after, '+inf'),
      ),
    );
    return counts.reduce<number>((sum, count) => sum + numberOf(count), 0);
  }

  async page(cursor: string, limit: number, prefix: string): Promise<OnlinePage> {
    const countMax = Math.min(Math.max(1, limit), onlinePageMax);
    const users: string[] = [];
    let scanned = 0;
    let place: Place | undefined = readCursor(cursor);
    while (place !== undefined && users.length < countMax && scanned < scannedMax) {
      const [next, pairs] = await this.#scan(place);
      scanned += Math.max(1, pairs.length);
      const { last } = place;
      // By name: scores change with each refresh, and so does the order in which Redis answers.
      const found = pairs.filter(([userId]) => userId > last).sort(([a], [b]) => (a < b ? -1 : 1));
      const full = this.#take(found, users, countMax, prefix);
      place = full ? { ...place, last: users.at(-1) ?? '' } : next;
    }
    return { users, cursor: place === undefined ? '' : `${place.shard}.${place.scan}.${place.last}` };
  }

  /** Adds to the page. Answers true when the page was full before all were looked at. */
  #take(found: readonly [string, string][], users: string[], countMax: number, prefix: string): boolean {
    const now = this.#shared.now();
    for (const [userId, until] of found) {
      if (Number(until) <= now || !userId.startsWith(prefix)) continue;
      if (users.length === countMax) return true;
      users.push(userId);
    }
    return false;
  }

  /** What stands at a place, and the place after all of it. */
  async #scan({ shard, scan }: Place): Promise<[Place | undefined, [string, string][]]> {
    const reply = listOf(await this.#link.call('zscan', this.#key(shard), scan, 'COUNT', scanCount));
    const rest = String(reply[0]);
    const pairs = pairsOf(reply[1]);
    if (rest !== '0') return [{ shard, scan: rest, last: '' }, pairs];
    return [shard + 1 < onlineShards ? { shard: shard + 1, scan: '0', last: '' } : undefined, pairs];
  }

  #key(shard: number): string {
    return this.#shared.keys.online(shard);
  }
}

function readCursor(cursor: string): Place {
  if (cursor === '') return { shard: 0, scan: '0', last: '' };
  const [, shard = '', scan = '', last = ''] = cursorSyntax.exec(cursor) ?? [];
  if (shard === '' || BigInt(scan) > scanCursorMax) {
    throw new BrokerError('invalid_frame', 'the cursor is not one of this list');
  }
  return { shard: Number(shard), scan, last };
}
