import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { directTtlSecMax, type DirectQueue, type QueuedPush } from '../../broker/direct-queue.js';
import type { SessionRecord, SessionStore } from '../../broker/sessions.js';
import type { Payload } from '../../protocol/payload.js';
import { isOffset } from '../../protocol/position.js';
import { eventually } from '../support/signal.js';
import type { UsersEngine, UsersFixture } from './users-engine.js';

const queueMax = 10;
const ttlSec = 3600;

function json(value: unknown): Payload {
  return { format: 'json', text: JSON.stringify(value) };
}

function session(userId: string, counter = 1): SessionRecord {
  return { userId, id: `edge-1.${counter}`, login: 1000, active: 3000, device: `device ${counter}` };
}

/** What every direct queue does, whatever it runs on. */
export function directQueueConformance(name: string, engine: UsersEngine): void {
  describe(`direct queue: ${name}`, () => {
    let fixture: UsersFixture;
    let queue: DirectQueue;
    let sessions: SessionStore;

    beforeEach(async () => {
      fixture = await engine.make({ queueMax });
      ({ queue, sessions } = fixture);
      await sessions.start();
    });

    afterEach(async () => {
      await sessions.stop();
      await fixture.dispose();
    });

    async function pushMany(userId: string, count: number): Promise<QueuedPush[]> {
      const pushed: QueuedPush[] = [];
      for (let i = 1; i <= count; i++) pushed.push(await queue.push(userId, json(i), ttlSec));
      return pushed;
    }

    async function pendingIds(userId: string, after = 0): Promise<number[]> {
      return (await queue.pending(userId, after)).map(({ id }) => id);
    }

    it('keeps messages in order, each naming the one before', async () => {
      const pushed = await pushMany('ann', 5);
      expect(pushed[0]?.prev).toBe(0);
      for (const [i, { id, prev }] of pushed.entries()) {
        expect(isOffset(id)).toBe(true);
        expect(id).toBeGreaterThan(prev);
        if (i > 0) expect(prev).toBe(pushed[i - 1]?.id);
      }
      const expected = pushed.map(({ id }, i) => ({ id, payload: json(i + 1) }));
      expect(await queue.pending('ann', 0)).toEqual(expected);
      expect(await queue.pending('ann', pushed[2]!.id)).toEqual(expected.slice(3));
      expect(await queue.pending('ann', pushed[4]!.id)).toEqual([]);
      expect((await sessions.register(session('ann'))).pending).toEqual(expected);
    });

    it('answers the sessions of the user, and of nobody else', async () => {
      await sessions.register(session('bob'));
      expect((await queue.push('ann', json(1), ttlSec)).sessions).toEqual([]);
      await sessions.register(session('ann', 1));
      await sessions.register(session('ann', 2));
      const pushed = await queue.push('ann', json(2), ttlSec);
      const ids = pushed.sessions.map(({ id }) => id).toSorted();
      expect(ids).toEqual([session('ann', 1).id, session('ann', 2).id]);
      expect(pushed.sessions).toContainEqual(session('ann', 2));
      await sessions.remove('ann', session('ann', 1).id);
      expect((await queue.push('ann', json(3), ttlSec)).sessions).toEqual([session('ann', 2)]);
    });

    it('keeps users apart', async () => {
      const [ann] = await pushMany('ann', 1);
      for (const user of ['ann.b', 'ann:b', 'ann=', '@ann', 'ann-']) {
        expect(await queue.pending(user, 0)).toEqual([]);
        const { prev } = await queue.push(user, json(user), ttlSec);
        expect(prev).toBe(0);
        expect((await queue.pending(user, 0)).map(({ payload }) => payload)).toEqual([json(user)]);
      }
      expect(await queue.acknowledge('bob', [ann!.id])).toBe(0);
      expect(await pendingIds('ann')).toEqual([ann!.id]);
    });

    it('keeps payloads of both formats byte for byte', async () => {
      const bytes = Uint8Array.of(0xc4, 4, 0, 255, 13, 10);
      const text = '{"n":9007199254740993, "f":1.0,"s":"ü€😀\\n"}';
      await queue.push('ann', { format: 'msgpack', bytes }, ttlSec);
      await queue.push('ann', { format: 'json', text }, ttlSec);
      await queue.push('ann', json('z'.repeat(256 * 1024 - 2)), ttlSec);
      const [binary, written, large] = (await queue.pending('ann', 0)).map(({ payload }) => payload);
      expect(binary?.format === 'msgpack' && [...binary.bytes]).toEqual([...bytes]);
      expect(written).toEqual({ format: 'json', text });
      expect(large).toEqual(json('z'.repeat(256 * 1024 - 2)));
    });

    it('lets go of what any device acknowledged, for all of them', async () => {
      await sessions.register(session('ann', 1));
      await sessions.register(session('ann', 2));
      const [a, b, c] = await pushMany('ann', 3);
      expect(await queue.acknowledge('ann', [b!.id])).toBe(1);
      expect(await pendingIds('ann')).toEqual([a!.id, c!.id]);
      expect((await sessions.register(session('ann', 3))).pending.map(({ id }) => id)).toEqual([
        a!.id,
        c!.id,
      ]);
      expect(await queue.acknowledge('ann', [b!.id, a!.id, c!.id])).toBe(2);
      expect(await pendingIds('ann')).toEqual([]);
    });

    it('ignores acknowledgements of unknown ids, and counts each id once', async () => {
      const [a] = await pushMany('ann', 1);
      expect(await queue.acknowledge('ann', [0, a!.id + 1, 2 ** 52])).toBe(0);
      expect(await queue.acknowledge('ann', [])).toBe(0);
      expect(await queue.acknowledge('nobody', [1])).toBe(0);
      expect(await queue.acknowledge('ann', [a!.id, a!.id])).toBe(1);
    });

    it('refuses what a full queue cannot hold, and evicts nothing', async () => {
      const pushed = await pushMany('ann', queueMax);
      await expect(queue.push('ann', json('more'), ttlSec)).rejects.toMatchObject({ code: 'queue_full' });
      const ids = pushed.map(({ id }) => id);
      expect(await pendingIds('ann')).toEqual(ids);
      await queue.push('bob', json('has room'), ttlSec);
      await queue.acknowledge('ann', [ids[3]!]);
      const next = await queue.push('ann', json('fits'), ttlSec);
      expect(next.prev).toBe(ids.at(-1));
      expect(await pendingIds('ann')).toEqual([...ids.filter((id) => id !== ids[3]), next.id]);
    });

    it('counts on after everything was acknowledged, while the user is connected', async () => {
      await sessions.register(session('ann'));
      const first = await pushMany('ann', 3);
      await queue.acknowledge(
        'ann',
        first.map(({ id }) => id),
      );
      const next = await queue.push('ann', json(4), ttlSec);
      expect(next.prev).toBe(first[2]!.id);
      expect(next.id).toBeGreaterThan(next.prev);
    });

    it('gives distinct increasing ids to pushes at once', async () => {
      const pushed = await Promise.all(
        Array.from({ length: queueMax }, (_, i) => queue.push('ann', json(i), ttlSec)),
      );
      const inOrder = pushed.toSorted((a, b) => a.id - b.id);
      expect(new Set(pushed.map(({ id }) => id)).size).toBe(queueMax);
      expect(inOrder.map(({ prev }) => prev)).toEqual([0, ...inOrder.slice(0, -1).map(({ id }) => id)]);
      const pending = await queue.pending('ann', 0);
      expect(pending.map(({ id }) => id)).toEqual(inOrder.map(({ id }) => id));
      for (const [i, { id }] of pushed.entries()) {
        expect(pending.find((message) => message.id === id)?.payload).toEqual(json(i));
      }
    });

    it('holds no more than its bound when pushes race for the last places', async () => {
      const outcomes = await Promise.allSettled(
        Array.from({ length: queueMax + 5 }, (_, i) => queue.push('ann', json(i), ttlSec)),
      );
      expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(5);
      expect(await queue.pending('ann', 0)).toHaveLength(queueMax);
    });

    it('drops a message when its time is over, and not its neighbours', async () => {
      const first = await queue.push('ann', json('long'), ttlSec);
      const short = await queue.push('ann', json('short'), 1);
      const last = await queue.push('ann', json('longest'), directTtlSecMax);
      if (engine.clock !== undefined) {
        engine.clock.advance(999);
        expect(await pendingIds('ann')).toEqual([first.id, short.id, last.id]);
        engine.clock.advance(1);
        expect(await pendingIds('ann')).toEqual([first.id, last.id]);
      }
      await eventually('the short one is gone', async () => (await pendingIds('ann')).length === 2);
      expect(await pendingIds('ann')).toEqual([first.id, last.id]);
      expect((await sessions.register(session('ann'))).pending.map(({ id }) => id)).toEqual([
        first.id,
        last.id,
      ]);
      expect(await queue.acknowledge('ann', [short.id])).toBe(0);
    });

    it('has room again when messages of a full queue are over their time', async () => {
      for (let i = 1; i < queueMax; i++) await queue.push('ann', json(i), 1);
      await queue.push('ann', json('long'), ttlSec);
      await Promise.allSettled([queue.push('ann', json('refused if it is still full'), ttlSec)]);
      if (engine.clock !== undefined) engine.clock.advance(1000);
      await eventually('the short ones are gone', async () => (await pendingIds('ann')).length <= 2);
      const before = await pendingIds('ann');
      const next = await queue.push('ann', json('fits'), ttlSec);
      expect(next.prev).toBe(before.at(-1));
      expect(await pendingIds('ann')).toEqual([...before, next.id]);
    });

    const { clock } = engine;
    if (clock !== undefined) {
      it('keeps each message for its own time, a week at most', async () => {
        await queue.push('ann', json(1), directTtlSecMax);
        await queue.push('ann', json(2), ttlSec);
        clock.advance(ttlSec * 1000);
        expect((await queue.pending('ann', 0)).map(({ payload }) => payload)).toEqual([json(1)]);
        clock.advance((directTtlSecMax - ttlSec) * 1000 - 1);
        expect(await queue.pending('ann', 0)).toHaveLength(1);
        clock.advance(1);
        expect(await queue.pending('ann', 0)).toEqual([]);
      });
    }
  });
}
