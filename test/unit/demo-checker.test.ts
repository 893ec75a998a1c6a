import { describe, expect, it } from 'vitest';
import { Checker, inFlightMs } from '../../bench/demo/checker.js';
import { canonicalJson, matchedTopics } from '../../bench/demo/matching.js';
import { align } from '../../bench/demo/sequence.js';
import { planDrops, readFeed, readUsers, type DemoUser, type FeedEvent } from '../../bench/demo/traffic.js';
import { sum, type Kind } from '../../bench/demo/verdict.js';

const users: DemoUser[] = [
  { user: 'ann', device: 'web', topics: ['item.1', 'coupon.food.kfc', 'coupon.food.>', 'system.flash-sale'] },
  { user: 'bob', device: 'ios', topics: ['item.*', 'system.flash-sale'] },
];
const feed: FeedEvent[] = [
  publish('item.1', { n: 1 }),
  publish('item.2', { n: 1 }),
  publish('coupon.food.kfc', { n: 1 }),
  publish('item.1', { n: 2 }),
  direct('ann', 'a'),
  publish('system.flash-sale', 'x'),
  publish('item.1', { n: 1 }),
  publish('system.flash-sale', 'y'),
  direct('ann', 'b'),
  direct('bob', 'a'),
  publish('item.1', { n: 1 }),
  publish('coupon.toys.lego', { n: 1 }),
];

function publish(topic: string, data: unknown): FeedEvent {
  return { at: 0, kind: 'publish', topic, data };
}

function direct(user: string, data: unknown): FeedEvent {
  return { at: 0, kind: 'direct', user, data };
}

interface Delivery {
  readonly user: string;
  readonly event: number;
}

const forAnn = [0, 2, 3, 4, 5, 6, 7, 8, 10];
const forBob = [0, 1, 3, 5, 6, 7, 9, 10];
const everything: Delivery[] = [
  ...forAnn.map((event) => ({ user: 'ann', event })),
  ...forBob.map((event) => ({ user: 'bob', event })),
];

/** Tells a checker of these deliveries; the offset of a durable message is its place in the feed, plus 100. */
function deliver(checker: Checker, deliveries: readonly Delivery[], connection = 1): void {
  for (const { user, event } of deliveries) {
    const content = feed[event];
    if (content?.kind === 'direct') checker.direct(user, event, content.data, connection);
    if (content?.kind !== 'publish') continue;
    checker.message(
      user,
      content.topic,
      content.data,
      content.topic.startsWith('system.') ? undefined : event + 100,
    );
  }
}

function newChecker(): Checker {
  const checker = new Checker(users, feed, (i) => (i === 0 ? 'json' : 'msgpack'));
  for (const [i] of feed.entries()) checker.publishing(i, i * 10_000);
  return checker;
}

function verdictOn(deliveries: readonly Delivery[]) {
  const checker = newChecker();
  deliver(checker, deliveries);
  return checker.verdict();
}

function without(user: string, event: number): Delivery[] {
  return everything.filter((each) => each.user !== user || each.event !== event);
}

/** The counts of a kind that are not zero or as expected. */
function odd(verdict: ReturnType<Checker['verdict']>, kind: Kind) {
  const { lost, twice, outOfOrder, foreign } = sum(verdict.counts[kind]);
  return { lost, twice, outOfOrder, foreign };
}

const fine = { lost: 0, twice: 0, outOfOrder: 0, foreign: 0 };

describe('the checker of the demo', () => {
  it('accepts a sound run, and counts it by kind and codec', () => {
    const verdict = verdictOn(everything);
    expect(verdict).toMatchObject({ ok: true, faults: [], redelivered: 0 });
    expect(verdict.counts.durable.json).toMatchObject({ expected: 5, received: 5 });
    expect(verdict.counts.durable.msgpack).toMatchObject({ expected: 5, received: 5 });
    expect(sum(verdict.counts.live)).toMatchObject({ expected: 4, expectedMost: 4, received: 4 });
    expect(sum(verdict.counts.direct)).toMatchObject({ expected: 3, received: 3 });
    expect(newChecker().owed()).toEqual({ durable: 10, live: 4, direct: 3 });
  });

  it.each([
    ['durable', 3],
    ['live', 5],
    ['direct', 8],
  ] as const)('finds a lost %s message', (kind, event) => {
    const verdict = verdictOn(without('ann', event));
    expect(verdict.ok).toBe(false);
    expect(odd(verdict, kind)).toEqual({ ...fine, lost: 1 });
    expect(verdict.faults).toHaveLength(1);
  });

  it('finds one lost of two equal messages', () => {
    expect(odd(verdictOn(without('bob', 6)), 'durable')).toEqual({ ...fine, lost: 1 });
  });

  it.each([
    ['durable', 3],
    ['live', 7],
  ] as const)('finds a %s message that came twice', (kind, event) => {
    const verdict = verdictOn([...everything, { user: 'bob', event }]);
    expect(verdict.ok).toBe(false);
    expect(odd(verdict, kind)).toEqual({ ...fine, twice: 1 });
  });

  it('tells a repetition from an equal message that is lost', () => {
    const verdict = verdictOn([...without('ann', 10), { user: 'ann', event: 6 }]);
    expect(odd(verdict, 'durable')).toEqual({ ...fine, lost: 1, twice: 1 });
  });

  it('finds a repetition across a reconnect', () => {
    const checker = newChecker();
    deliver(checker, everything);
    checker.cut('ann', 1e6);
    checker.back('ann', 1e6 + 1);
    deliver(checker, [{ user: 'ann', event: 10 }], 2);
    expect(odd(checker.verdict(), 'durable')).toEqual({ ...fine, twice: 1 });
  });

  it.each([
    ['durable', 0, 3],
    ['durable, of equal ones', 6, 10],
    ['live', 5, 7],
    ['direct', 4, 8],
  ] as const)('finds two messages that changed places: %s', (name, first, second) => {
    const swapped = everything.map(({ user, event }) => {
      if (user !== 'ann') return { user, event };
      return { user, event: event === first ? second : event === second ? first : event };
    });
    const verdict = verdictOn(swapped);
    expect(verdict.ok).toBe(false);
    expect(odd(verdict, name.split(',')[0] as Kind)).toEqual({ ...fine, outOfOrder: 1 });
  });

  it('finds what was never owed: a topic not asked for, and data not published', () => {
    expect(odd(verdictOn([...everything, { user: 'ann', event: 1 }]), 'durable')).toEqual({
      ...fine,
      foreign: 1,
    });
    const checker = newChecker();
    deliver(checker, everything);
    checker.message('ann', 'item.1', { n: 9 }, 999);
    checker.direct('bob', 99, 'b', 1);
    expect(odd(checker.verdict(), 'durable')).toEqual({ ...fine, foreign: 1 });
    expect(odd(checker.verdict(), 'direct')).toEqual({ ...fine, foreign: 1 });
  });
});

describe('direct messages that come again', () => {
  function again(prepare: (checker: Checker) => void, connection: number) {
    const checker = newChecker();
    deliver(checker, everything);
    prepare(checker);
    deliver(checker, [{ user: 'ann', event: 4 }], connection);
    return checker.verdict();
  }

  it('are as they should be on a later connection, when the acknowledgement was not confirmed', () => {
    const verdict = again(() => undefined, 2);
    expect(verdict).toMatchObject({ ok: true, redelivered: 1 });
    expect(sum(verdict.counts.direct)).toMatchObject({ expected: 3, received: 3 });
  });

  it('are twice on the same connection', () => {
    expect(
      odd(
        again(() => undefined, 1),
        'direct',
      ),
    ).toEqual({ ...fine, twice: 1 });
  });

  it('are twice once the acknowledgement was confirmed', () => {
    expect(
      odd(
        again((checker) => checker.confirmed('ann', [4]), 2),
        'direct',
      ),
    ).toEqual({ ...fine, twice: 1 });
  });
});

describe('live messages around an absence', () => {
  /** Ann is away from just after event 5 to just before event 8; the clock is ten seconds an event. */
  function afterAbsence(missing: readonly number[]) {
    const checker = newChecker();
    checker.cut('ann', 5 * 10_000 + inFlightMs);
    checker.back('ann', 8 * 10_000);
    deliver(
      checker,
      everything.filter(({ user, event }) => user !== 'ann' || !missing.includes(event)),
    );
    return checker.verdict();
  }

  it('may be missing while the user was away, and may be there', () => {
    for (const missing of [[], [7]]) {
      const verdict = afterAbsence(missing);
      expect(verdict.ok).toBe(true);
      expect(sum(verdict.counts.live)).toMatchObject({
        expected: 3,
        expectedMost: 4,
        received: 4 - missing.length,
      });
    }
  });

  it('may not be missing from before', () => {
    expect(odd(afterAbsence([5]), 'live')).toEqual({ ...fine, lost: 1 });
  });

  it('leave durable and direct messages owed', () => {
    expect(odd(afterAbsence([6]), 'durable')).toEqual({ ...fine, lost: 1 });
    expect(odd(afterAbsence([8]), 'direct')).toEqual({ ...fine, lost: 1 });
  });
});

describe('the parts of the checker', () => {
  it('matches filters as the protocol page says', () => {
    const topics = ['a', 'a.b', 'a.b.c', 'a.bb', 'aXb', 'b.b'];
    const of = (...filters: string[]) => [...matchedTopics(filters, topics)];
    expect(of('a')).toEqual(['a']);
    expect(of('a.b')).toEqual(['a.b']);
    expect(of('a.*')).toEqual(['a.b', 'a.bb']);
    expect(of('a.>')).toEqual(['a.b', 'a.b.c', 'a.bb']);
    expect(of('a.*.c', 'b.b')).toEqual(['a.b.c', 'b.b']);
    expect(of('a.*.>')).toEqual(['a.b.c']);
    expect(of()).toEqual([]);
  });

  it('takes values for equal whatever the order of their keys', () => {
    expect(canonicalJson({ b: [1, { d: 1, c: null }], a: 'x' })).toBe(
      canonicalJson({ a: 'x', b: [1, { c: null, d: 1 }] }),
    );
    expect(canonicalJson({ a: 1 })).not.toBe(canonicalJson({ a: '1' }));
    expect(canonicalJson([1, 2])).not.toBe(canonicalJson([2, 1]));
  });

  it('counts one misplaced message as one', () => {
    expect(align([1, 2, 3, 4, 5], [2, 3, 4, 5, 1])).toEqual({
      inOrder: 4,
      outOfOrder: 1,
      lost: 0,
      twice: 0,
      foreign: 0,
    });
  });

  it('prefers the certain one of two equal messages', () => {
    expect(align([7, 7], [7], new Set([0])).lost).toBe(0);
    expect(align([7, 7], [7], new Set([1])).lost).toBe(0);
    expect(align([7, 7], [7]).lost).toBe(1);
  });

  it('plans the same drops for the same seed, inside the feed', () => {
    const many = Array.from({ length: 50 }, (_, i) => ({ user: `u${i}`, device: 'web', topics: [] }));
    const drops = planDrops(many, 400, 20, 7);
    expect(planDrops(many, 400, 20, 7)).toEqual(drops);
    expect(planDrops(many, 400, 20, 8)).not.toEqual(drops);
    expect(new Set(drops.map((drop) => drop.user)).size).toBe(10);
    for (const { cut, back } of drops) {
      expect(cut).toBeGreaterThanOrEqual(20);
      expect(back).toBeGreaterThan(cut);
      expect(back).toBeLessThanOrEqual(400);
    }
  });

  it('owes the users of the data set what a plain count of the files says', () => {
    const everybody = readUsers('bench/data/users.ndjson');
    const events = readFeed('bench/data/feed.ndjson');
    const counted = { durable: 0, live: 0, direct: 0 };
    for (const event of events) {
      if (event.kind === 'direct') {
        counted.direct++;
        continue;
      }
      const category = event.topic.split('.').slice(0, 2).join('.');
      const readers = everybody.filter(
        ({ topics }) => topics.includes(event.topic) || topics.includes(`${category}.>`),
      ).length;
      counted[event.topic === 'system.flash-sale' ? 'live' : 'durable'] += readers;
    }
    expect(counted.durable).toBeGreaterThan(10_000);
    expect(new Checker(everybody, events, () => 'json').owed()).toEqual(counted);
  });
});
