import { beforeEach, describe, expect, it } from 'vitest';
import { createMemoryUsers, type MemoryUsers } from '../../broker/memory-users.js';
import { sessionTtlSec } from '../../broker/sessions.js';
import type { Payload } from '../../protocol/payload.js';
import { createTestClock, type TestClock } from '../support/test-clock.js';

const payload: Payload = { format: 'json', text: '1' };
const empty = { users: 0, sessions: 0, messages: 0 };

function session(userId: string, counter = 1) {
  return { userId, id: `edge-1.${counter}`, login: 1, active: 1 };
}

describe('memory users', () => {
  let clock: TestClock;
  let users: MemoryUsers;

  beforeEach(() => {
    clock = createTestClock();
    users = createMemoryUsers({ now: clock.now });
  });

  it('drops the record of a user with the last session and message', async () => {
    await users.sessions.register(session('ann'));
    const { id } = await users.queue.push('ann', payload, 60);
    await users.sessions.remove('ann', session('ann').id);
    expect(users.sizes()).toEqual({ users: 1, sessions: 0, messages: 1 });
    await users.queue.acknowledge('ann', [id]);
    expect(users.sizes()).toEqual(empty);
  });

  it('never lets direct ids go down, also when the record was dropped between', async () => {
    const ids: number[] = [];
    for (const user of ['ann', 'bob', 'ann', 'ann', 'bob', 'ann']) {
      const { id } = await users.queue.push(user, payload, 60);
      if (user === 'ann') ids.push(id);
      await users.queue.acknowledge(user, [id]);
      expect(users.sizes()).toEqual(empty);
    }
    expect(ids).toEqual([...new Set(ids)].toSorted((a, b) => a - b));
  });

  it('starts above the ids of an earlier process', async () => {
    const before = await users.queue.push('ann', payload, 60);
    clock.advance(1000);
    const after = await createMemoryUsers({ now: clock.now }).queue.push('ann', payload, 60);
    expect(after.id).toBeGreaterThan(before.id);
  });

  it('tells a session of a dropped record to read the queue: the next prev is not what it has seen', async () => {
    await users.sessions.register(session('ann'));
    const seen = (await users.queue.push('ann', payload, 60)).id;
    await users.queue.acknowledge('ann', [seen]);
    clock.advance(sessionTtlSec * 1000);
    expect((await users.sessions.sessionsOf('ann')).length).toBe(0);
    expect(await users.sessions.refresh([session('ann')])).toEqual(new Map([['ann', 0]]));
    const next = await users.queue.push('ann', payload, 60);
    expect(next.prev).not.toBe(seen);
    expect(next.id).toBeGreaterThan(seen);
    expect(next.sessions).toEqual([session('ann')]);
  });

  it('finds messages that nobody reads and that have expired, with the writes of others', async () => {
    for (let i = 0; i < 200; i++) await users.queue.push(`gone-${i}`, payload, 10);
    clock.advance(10_000);
    for (let i = 0; i < 200; i++) {
      await users.sessions.register(session('ann', i));
      await users.sessions.remove('ann', session('ann', i).id);
    }
    expect(users.sizes()).toEqual(empty);
  });

  it('holds nothing when all sessions and messages have expired', async () => {
    for (let i = 0; i < 300; i++) {
      await users.sessions.register(session(`user-${i}`));
      await users.queue.push(`user-${i}`, payload, 60);
    }
    clock.advance(sessionTtlSec * 1000);
    expect(await users.sessions.onlineCount()).toBe(0);
    for (let i = 0; i < 300; i++) expect(await users.queue.pending(`user-${i}`, 0)).toEqual([]);
    expect(users.sizes()).toEqual(empty);
  });

  it('continues a scan over users that leave, and refuses a cursor beyond the list', async () => {
    for (let i = 0; i < 500; i++) await users.sessions.register(session(`user-${i}`));
    const first = await users.sessions.onlineUsers('', 100, '');
    for (let i = 0; i < 450; i++) await users.sessions.remove(`user-${i}`, session('').id);
    const rest = await users.sessions.onlineUsers(first.cursor, 1000, '');
    expect(rest).toEqual({ users: Array.from({ length: 50 }, (_, i) => `user-${450 + i}`), cursor: '' });
    await expect(users.sessions.onlineUsers('501', 10, '')).rejects.toMatchObject({ code: 'invalid_frame' });
  });

  it('looks at so many users for one page, and goes on with the next', async () => {
    for (let i = 0; i < 10_050; i++) await users.sessions.register(session(`user-${i}`));
    const first = await users.sessions.onlineUsers('', 10, 'user-10049');
    expect(first.users).toEqual([]);
    const second = await users.sessions.onlineUsers(first.cursor, 10, 'user-10049');
    expect(second).toEqual({ users: ['user-10049'], cursor: '' });
  });
});
