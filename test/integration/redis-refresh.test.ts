import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createRedisKeys, onlineShardOf, slotOf } from '../../broker/redis-keys.js';
import { RedisLink } from '../../broker/redis-link.js';
import { createRedisUsers, type RedisUsers } from '../../broker/redis-users.js';
import { sessionTtlSec, type SessionRecord } from '../../broker/sessions.js';
import { callsBetween, redisCalls } from '../support/cluster.js';
import { startRedisCluster, type RedisNode, type RedisServers } from '../support/servers/redis-kit.js';

const keys = createRedisKeys('tc');
const names = Array.from({ length: 500 }, (_, i) => `user-${i}`);
const perMaster = Math.ceil(16_384 / 3);

function session(userId: string, counter = 1): SessionRecord {
  const now = Math.floor(Date.now() / 1000) * 1000;
  return { userId, id: `edge-1.${counter}`, login: now, active: now };
}

describe('refreshing many users in a Redis Cluster', () => {
  let servers: RedisServers;
  let link: RedisLink;
  let users: RedisUsers;

  beforeAll(async () => {
    // Part of the cluster may be away, and the rest goes on.
    servers = await startRedisCluster({ config: { 'cluster-require-full-coverage': 'no' } });
  });

  beforeEach(async () => {
    for (const node of servers.nodes.slice(0, 3)) await node.call('FLUSHALL');
    link = new RedisLink({ urls: servers.urls, retryMsMax: 500 });
    users = createRedisUsers({ link, prefix: 'tc' });
    await users.sessions.start();
    return () => link.close();
  });

  afterAll(() => servers.stop());

  /** The master that a user's keys have at first. */
  function homeOf(userId: string): RedisNode {
    return servers.nodes[Math.floor(slotOf(userId) / perMaster)]!;
  }

  async function ttlOf(userId: string, node = homeOf(userId)): Promise<number> {
    return Number(await node.call('TTL', keys.session(userId)));
  }

  it('writes all of them with a call for a hundred on each master, the same as if each had one', async () => {
    await users.sessions.register(session('user-7', 1));
    await users.sessions.register(session('user-7', 2));
    const pushed = await users.queue.push('user-7', { format: 'json', text: '1' }, 60);
    const before = await redisCalls(servers);
    const own = [...names.map((name) => session(name)), session('user-7', 2), session('user-7', 3)];
    const newest = await users.sessions.refresh(own);
    expect(newest).toEqual(new Map(names.map((name) => [name, name === 'user-7' ? pushed.id : 0])));
    const calls = callsBetween(before, await redisCalls(servers));
    expect((calls['eval'] ?? 0) + (calls['evalsha'] ?? 0)).toBeLessThanOrEqual(500 / 100 + 3);
    expect(calls['zadd']).toBe(16);
    for (const name of names) expect(await ttlOf(name)).toBeGreaterThan(sessionTtlSec - 60);
    expect(await users.sessions.onlineCount()).toBe(names.length);
    expect((await users.sessions.sessionsOf('user-7')).map(({ id }) => id).toSorted()).toEqual([
      'edge-1.1',
      'edge-1.2',
      'edge-1.3',
    ]);
  });

  it('trims the list of those online now and then, not each time', async () => {
    const own = names.map((name) => session(name));
    await users.sessions.refresh(own);
    const before = await redisCalls(servers);
    await users.sessions.refresh(own);
    expect(callsBetween(before, await redisCalls(servers))).not.toHaveProperty('zremrangebyscore');
  });

  it('registers again what a server has lost', async () => {
    const own = names.map((name) => session(name));
    await users.sessions.refresh(own);
    await servers.nodes[1]!.call('FLUSHALL');
    await servers.nodes[1]!.call('SCRIPT', 'FLUSH');
    const newest = await users.sessions.refresh(own);
    expect([...newest.values()].every((id) => id === 0)).toBe(true);
    for (const name of names) expect(await ttlOf(name)).toBeGreaterThan(0);
    expect(await users.sessions.onlineCount()).toBe(names.length);
  });

  it('extends the others when a key of one holds something else', async () => {
    const victims = ['user-3', 'user-300'];
    for (const name of victims) await homeOf(name).call('SET', keys.session(name), 'not a hash');
    const newest = await users.sessions.refresh(names.map((name) => session(name)));
    expect(newest.size).toBe(names.length);
    for (const name of names) {
      if (victims.includes(name)) {
        expect(newest.get(name)).toMatchObject({ code: 'unavailable', message: /WRONGTYPE/ });
        expect(await homeOf(name).call('GET', keys.session(name))).toBe('not a hash');
      } else {
        expect(newest.get(name)).toBe(0);
        expect(await ttlOf(name)).toBeGreaterThan(0);
      }
    }
    // Who could not be written is not called online either.
    expect(await users.sessions.onlineCount()).toBe(names.length - victims.length);
  });

  it('follows a slot that moves, and one that has moved', async () => {
    const mover = names[250]!;
    const slot = String(slotOf(mover));
    const from = homeOf(mover);
    const to = servers.nodes[(servers.nodes.indexOf(from) + 1) % 3]!;
    const [fromId, toId] = [await from.call('CLUSTER', 'MYID'), await to.call('CLUSTER', 'MYID')];
    const move = async (source: RedisNode, target: RedisNode): Promise<void> => {
      for (const key of [keys.session(mover), keys.queue(mover)]) {
        await source.call('MIGRATE', '127.0.0.1', String(target.port), key, '0', '5000', 'REPLACE');
      }
    };
    const own = names.map((name) => session(name));
    // A queue too: a script whose two keys are of a slot that moves waits until neither or both are there.
    const { id } = await users.queue.push(mover, { format: 'json', text: '1' }, 60);
    const allExtended = async (moverAt?: RedisNode): Promise<void> => {
      const newest = await users.sessions.refresh(own);
      expect(newest.get(mover)).toBe(id);
      expect([...newest.values()].filter((answer) => answer !== 0)).toEqual([id]);
      const others = names.filter((name) => slotOf(name) !== slotOf(mover));
      for (const name of others) expect(await ttlOf(name)).toBeGreaterThan(sessionTtlSec - 60);
      // Half way neither server answers for it without being asked in a special way.
      if (moverAt !== undefined) expect(await ttlOf(mover, moverAt)).toBeGreaterThan(sessionTtlSec - 60);
    };
    await users.sessions.refresh(own);
    await to.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', fromId);
    await from.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', toId);
    await allExtended(from);
    await move(from, to);
    await allExtended();
    await to.call('CLUSTER', 'SETSLOT', slot, 'NODE', toId);
    await from.call('CLUSTER', 'SETSLOT', slot, 'NODE', toId);
    await allExtended(to);
    expect(await users.sessions.onlineCount()).toBe(names.length);
    await to.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', fromId);
    await from.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', toId);
    await move(to, from);
    await from.call('CLUSTER', 'SETSLOT', slot, 'NODE', fromId);
    await to.call('CLUSTER', 'SETSLOT', slot, 'NODE', fromId);
  });

  it('extends those whose master is there while another is away', async () => {
    const own = names.map((name) => session(name));
    await users.sessions.refresh(own);
    // The replica first, so that nobody takes over.
    await servers.kill(3);
    await servers.kill(0);
    const gone = servers.nodes[0]!;
    const newest = await users.sessions.refresh(own);
    for (const name of names) {
      const shardIsGone = slotOf(keys.online(onlineShardOf(name))) < perMaster;
      if (homeOf(name) === gone || shardIsGone) {
        expect(newest.get(name)).toMatchObject({ code: 'unavailable' });
      } else {
        expect(newest.get(name)).toBe(0);
      }
      if (homeOf(name) !== gone) expect(await ttlOf(name)).toBeGreaterThan(sessionTtlSec - 60);
    }
    expect([...newest.values()].filter((answer) => answer === 0).length).toBeGreaterThan(100);
  });
});
