import { beforeEach, describe, expect, it } from 'vitest';
import { sessionTtlSec, type SessionRecord } from '../../broker/sessions.js';
import { allGrants } from '../../node/grants.js';
import { Heartbeat } from '../../node/heartbeat.js';
import type { Outlet } from '../../node/outlet.js';
import { Session } from '../../node/session.js';

const sweepMs = 1000;
const thirdMs = (sessionTtlSec * 1000) / 3;

/** A session that takes everything and says nothing. */
function session(userId: string, now: number): Session {
  const outlet: Partial<Outlet> = { ping: () => undefined };
  const owner = {
    detach: () => undefined,
    onRecovered: () => undefined,
    onFault: () => undefined,
    onDropped: () => undefined,
  };
  const identity = {
    id: `edge.${userId}`,
    principal: { userId, grants: allGrants, tokenId: userId, topics: [] },
    device: undefined,
    format: 'json' as const,
  };
  const one = new Session(identity, outlet as Outlet, owner, now);
  one.isRegistered = true;
  return one;
}

describe('the refresh of sessions', () => {
  let now: number;
  let sessions: Session[];
  let calls: { readonly at: number; readonly users: string[] }[];
  let failing: Set<string>;
  let told: string[];
  let reports: unknown[];
  let heartbeat: Heartbeat;

  beforeEach(() => {
    now = 1_700_000_000_000;
    sessions = [];
    calls = [];
    failing = new Set();
    told = [];
    reports = [];
    heartbeat = new Heartbeat({
      connections: { all: () => sessions.values() },
      store: {
        refresh: async (records: readonly SessionRecord[]) => {
          calls.push({ at: now, users: records.map(({ userId }) => userId) });
          return new Map(records.map(({ userId }) => [userId, failing.has(userId) ? new Error('no') : 0]));
        },
      },
      direct: { onNewest: ({ userId }) => void told.push(userId) },
      pingSec: 30,
      idleSec: 100_000,
      slowSec: 30,
      expiringSec: 60,
      log: { warn: (report: unknown) => void reports.push(report) },
      counters: { slowCloses: 0 },
    });
  });

  /** Sweeps once a second. What a sweep has started has ended before the next. */
  async function pass(ms: number): Promise<void> {
    for (const end = now + ms; now < end;) {
      now += sweepMs;
      heartbeat.sweep(now);
      await new Promise(setImmediate);
    }
  }

  it('comes once in a third of the time to live, no later, together for those who are due about then', async () => {
    for (let i = 0; i < 30; i++) {
      sessions.push(session(`u${i}`, now));
      await pass(sweepMs);
    }
    const begun = sessions.map(({ refreshed }) => refreshed);
    await pass(thirdMs);
    expect(calls.flatMap(({ users }) => users).toSorted()).toEqual(
      sessions.map(({ userId }) => userId).toSorted(),
    );
    expect(calls.length).toBeLessThanOrEqual(4);
    for (const { at, users } of calls) {
      for (const user of users) {
        const age = at - begun[Number(user.slice(1))]!;
        expect(age).toBeLessThanOrEqual(thirdMs);
        expect(age).toBeGreaterThan(thirdMs - 11_000);
      }
    }
  });

  it('goes on with the others when one fails, and tries that one again at the next sweep', async () => {
    // More than are refreshed in one go.
    for (let i = 0; i < 1100; i++) sessions.push(session(`u${i}`, now));
    failing.add('u3');
    await pass(thirdMs);
    expect(new Set(told).size).toBe(1099);
    const first = calls.length;
    expect(reports).toEqual(
      Array.from({ length: reports.length }, (_, i) => ({
        err: new Error('no'),
        sessions: 1,
        inARow: i + 1,
      })),
    );
    await pass(2 * sweepMs);
    expect(calls.slice(first).map(({ users }) => users)).toEqual([['u3'], ['u3']]);
    expect(heartbeat.degraded).toBe(true);
    failing.clear();
    await pass(sweepMs);
    expect(told).toContain('u3');
    expect(heartbeat.degraded).toBe(false);
    const then = calls.length;
    await pass(20 * sweepMs);
    expect(calls.length).toBe(then);
  });

  it('comes at the next sweep when it is asked for', async () => {
    sessions.push(session('ann', now));
    await pass(15 * sweepMs);
    expect(calls).toEqual([]);
    heartbeat.refreshSoon();
    await pass(sweepMs);
    expect(calls).toEqual([{ at: now, users: ['ann'] }]);
  });
});
