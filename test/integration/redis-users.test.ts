import { randomUUID } from 'node:crypto';
import { Cluster, Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { BrokerError } from '../../broker/errors.js';
import { createRedisKeys, onlineShardOf, type RedisKeys } from '../../broker/redis-keys.js';
import { RedisLink, type RedisState } from '../../broker/redis-link.js';
import { createRedisUsers, type RedisUsers } from '../../broker/redis-users.js';
import { sessionTtlSec, type SessionRecord } from '../../broker/sessions.js';
import { shortText } from '../../node/short-text.js';
import type { Payload } from '../../protocol/payload.js';
import { startRedis, startRedisCluster, type RedisServers } from '../support/servers/redis-kit.js';
import { Signal } from '../support/signal.js';

/** Times are kept to the second. */
function wholeSec(ms: number): number {
  return Math.floor(ms / 1000) * 1000;
}

function session(userId: string, counter = 1, node = 'edge-1'): SessionRecord {
  const now = wholeSec(Date.now());
  return { userId, id: `${node}.${shortText(counter)}`, login: now, active: now };
}

function json(value: unknown): Payload {
  return { format: 'json', text: JSON.stringify(value) };
}

describe('users in Redis', () => {
  let servers: RedisServers;
  let link: RedisLink;
  let raw: Redis;
  let keys: RedisKeys;
  let prefix: string;
  let unreadable: string[];
  let dead: Set<string>;
  let users: RedisUsers;

  beforeAll(async () => {
    servers = await startRedis();
    link = new RedisLink({ urls: servers.urls });
    raw = new Redis(servers.urls[0]!);
  });

  beforeEach(async () => {
    prefix = `test-${randomUUID()}`;
    keys = createRedisKeys(prefix);
    unreadable = [];
    dead = new Set();
    users = createRedisUsers({
      link,
      prefix,
      queueMax: 10,
      isDead: (nodeId) => dead.has(nodeId),
      onUnreadable: (key, field) => unreadable.push(`${key} ${field}`),
    });
    await users.sessions.start();
  });

  afterAll(async () => {
    raw.disconnect();
    await link.close();
    await servers.stop();
  });

  it('uses the keys, types and times to live of the design', async () => {
    await users.sessions.register({ ...session('ann'), device: 'phone' });
    await users.queue.push('ann', json({ a: 1 }), 60);
    expect((await raw.keys(`${prefix}:*`)).sort()).toEqual([
      `${prefix}:notify:queue:{ann}`,
      `${prefix}:online:users:${onlineShardOf('ann')}`,
      `${prefix}:session:{ann}`,
    ]);
    expect(await raw.ttl(keys.session('ann'))).toBeGreaterThan(sessionTtlSec - 60);
    expect(await raw.ttl(keys.queue('ann'))).toBeGreaterThan(7 * 86_400 - 60);
    const text = (await raw.hget(keys.session('ann'), 'edge-1.1')) ?? '';
    expect(text).toMatch(/^\{"login":\d{10},"device":"phone"\}$/);
    const { login } = JSON.parse(text) as { login: number };
    const score = await raw.zscore(keys.online(onlineShardOf('ann')), 'ann');
    expect(Number(score)).toBe((login + sessionTtlSec) * 1000);
  });

  it('lets a session live for its time although its last frame is old', async () => {
    await users.sessions.refresh([{ ...session('ann'), login: 1, active: 2 }]);
    expect(await users.sessions.sessionsOf('ann')).toHaveLength(1);
    const text = (await raw.hget(keys.session('ann'), 'edge-1.1')) ?? '';
    const { until } = JSON.parse(text) as { until: number };
    expect(until).toBeGreaterThan(Date.now() + (sessionTtlSec - 60) * 1000);
    expect(Number(await raw.zscore(keys.online(onlineShardOf('ann')), 'ann'))).toBe(until);
    await users.sessions.register(session('ann', 2));
    expect(await users.sessions.sessionsOf('ann')).toHaveLength(2);
  });

  it('refuses a prefix that would gather all users in one slot', () => {
    expect(() => createRedisKeys('a{b}')).toThrow(RangeError);
  });

  it('drops sessions whose time is over when another device connects or is refreshed', async () => {
    const over = `{"until":${Date.now() - 1000},"login":1,"active":2}`;
    const oldStyle = '{"login":1,"active":2}';
    for (const write of [
      () => users.sessions.register(session('ann', 5)),
      () => users.sessions.refresh([session('ann', 5)]),
    ]) {
      await raw.hset(keys.session('ann'), 'edge-9.1', over, 'edge-9.2', oldStyle);
      expect(await users.sessions.sessionsOf('ann')).not.toContainEqual(
        expect.objectContaining({ id: 'edge-9.1' }),
      );
      await write();
      expect(await raw.hkeys(keys.session('ann'))).toEqual(['edge-1.5']);
    }
  });

  it('leaves alone what does not parse, and says so', async () => {
    await raw.hset(
      keys.session('ann'),
      'edge-2.1',
      '\u0000java',
      'edge-2.2',
      '"text"',
      'edge-2.3',
      '{"a":1}',
    );
    await raw.hset(keys.queue('ann'), '5', 'not json', '6', '{"until":99999999999999,"msgpack":"?"}');
    await users.sessions.register(session('ann'));
    const pushed = await users.queue.push('ann', json(1), 60);
    await users.sessions.refresh([session('ann')]);
    expect(pushed.sessions).toEqual([expect.objectContaining({ id: 'edge-1.1' })]);
    expect((await users.sessions.sessionsOf('ann')).map(({ id }) => id)).toEqual(['edge-1.1']);
    expect((await users.queue.pending('ann', 0)).map(({ id }) => id)).toEqual([pushed.id]);
    expect(await users.queue.acknowledge('ann', [5])).toBe(0);
    expect(await raw.hlen(keys.session('ann'))).toBe(4);
    expect(await raw.hget(keys.queue('ann'), '5')).toBe('not json');
    for (const field of ['2.1', '2.2', '2.3']) {
      expect(unreadable).toContain(`${keys.session('ann')} edge-${field}`);
    }
    expect(unreadable).toContain(`${keys.queue('ann')} 5`);
    expect(unreadable).toContain(`${keys.queue('ann')} 6`);
  });

  it('keeps members of a session that it does not know', async () => {
    await users.sessions.register(session('ann'));
    const text = (await raw.hget(keys.session('ann'), 'edge-1.1')) ?? '';
    const future = { ...(JSON.parse(text) as object), zone: 'b', tags: { x: [1, 'é"'] } };
    await raw.hset(keys.session('ann'), 'edge-1.1', JSON.stringify(future));
    const own = session('ann');
    const refreshed = { ...own, active: own.login + 5000, device: 'desk' };
    await users.sessions.refresh([refreshed]);
    const kept = JSON.parse((await raw.hget(keys.session('ann'), 'edge-1.1')) ?? '') as object;
    expect(kept).toMatchObject({
      zone: 'b',
      tags: { x: [1, 'é"'] },
      active: 5,
      device: 'desk',
    });
    expect(await users.sessions.sessionsOf('ann')).toEqual([refreshed]);
  });

  it('reads a message that another program wrote, in any order of members', async () => {
    const text = ' {"json": {"n":9007199254740993, "f":1.0} , "from":"x", "until":99999999999999}';
    await raw.hset(keys.queue('ann'), '7', text);
    expect(await users.queue.pending('ann', 0)).toEqual([
      { id: 7, payload: { format: 'json', text: '{"n":9007199254740993, "f":1.0}' } },
    ]);
    expect(await users.queue.acknowledge('ann', [7])).toBe(1);
  });

  it('leaves out sessions of nodes known to be dead', async () => {
    await users.sessions.register(session('ann', 1, 'edge-1'));
    await users.sessions.register(session('ann', 1, 'edge-2'));
    dead.add('edge-2');
    const alive = [expect.objectContaining({ id: 'edge-1.1' })];
    expect(await users.sessions.sessionsOf('ann')).toEqual(alive);
    expect((await users.queue.push('ann', json(1), 60)).sessions).toEqual(alive);
  });

  it('takes a user offline with the last device, whichever node it was on and whichever came first', async () => {
    const other = createRedisUsers({ link, prefix });
    await other.sessions.start();
    for (const [first, second] of [
      [users, other],
      [other, users],
    ] as const) {
      await users.sessions.register(session('ann', 1, 'edge-1'));
      await other.sessions.register(session('ann', 1, 'edge-2'));
      await first.sessions.remove('ann', first === users ? 'edge-1.1' : 'edge-2.1');
      expect(await users.sessions.onlineCount()).toBe(1);
      await second.sessions.remove('ann', second === users ? 'edge-1.1' : 'edge-2.1');
      expect(await users.sessions.onlineCount()).toBe(0);
    }
  });

  it('leaves the entry of a device that connects while another leaves', async () => {
    await users.sessions.register(session('ann'));
    // The other device's ZADD has arrived, its registration has not.
    await raw.zadd(keys.online(onlineShardOf('ann')), Date.now() + sessionTtlSec * 1000 + 77, 'ann');
    await users.sessions.remove('ann', 'edge-1.1');
    expect(await users.sessions.onlineCount()).toBe(1);
  });

  it('counts nobody whose time is over, and drops the entry at a refresh', async () => {
    const key = keys.online(onlineShardOf('ann'));
    await raw.zadd(key, Date.now() - 1, 'ghost');
    await users.sessions.register(session('ann'));
    expect(await users.sessions.onlineCount()).toBe(1);
    expect((await users.sessions.onlineUsers('', 10, '')).users).toEqual(['ann']);
    await users.sessions.refresh([session('ann')]);
    expect(await raw.zrange(key, '0', '-1')).toEqual(['ann']);
  });

  it('lists thousands, each once, while they are being refreshed', async () => {
    const names = Array.from({ length: 20_000 }, (_, i) => `user-${i}`);
    await users.sessions.refresh(names.map((name) => session(name)));
    const listed: string[] = [];
    let cursor = '';
    do {
      const page = await users.sessions.onlineUsers(cursor, 333, '');
      listed.push(...page.users);
      cursor = page.cursor;
      const some = names.slice(listed.length % 9000, (listed.length % 9000) + 50);
      await users.sessions.refresh(some.map((name) => session(name)));
    } while (cursor !== '');
    expect(listed.length).toBe(names.length);
    expect(new Set(listed).size).toBe(names.length);
    expect(await users.sessions.onlineCount()).toBe(names.length);
  });

  it('gives ids that rise even when the queue was lost', async () => {
    const before = await users.queue.push('ann', json(1), 60);
    await raw.del(keys.queue('ann'));
    const after = await users.queue.push('ann', json(2), 60);
    expect(after.id).toBeGreaterThan(before.id);
    expect(after.prev).toBe(0);
  });

  it('queues once what is pushed again with the same token', async () => {
    const args = (retried: string): (string | number)[] => [60_000, 10, 600, 'token-1', retried, '"json":1}'];
    const both = [keys.queue('ann'), keys.session('ann')];
    const before = await users.queue.push('ann', json(0), 60);
    const [first] = (await link.script('push', both, args('0'))) as number[];
    expect(await link.script('push', both, args('1'))).toEqual([first, before.id, expect.any(Number), []]);
    expect(await users.queue.pending('ann', before.id)).toHaveLength(1);
  });

  it('loads its scripts again when the server forgot them', async () => {
    await users.sessions.register(session('ann'));
    await raw.script('FLUSH');
    await users.sessions.register(session('ann', 2));
    expect(await users.sessions.sessionsOf('ann')).toHaveLength(2);
  });

  it('reads times in ms as well, and writes what stands for them in seconds', async () => {
    const ms = Date.now() - 5000;
    await raw.hset(keys.session('ann'), 'edge-9.1', `{"login":${ms},"active":${ms + 1234},"device":"tv"}`);
    const old = { userId: 'ann', id: 'edge-9.1', login: ms, active: ms + 1234, device: 'tv' };
    // Neither reader takes it for one whose time is over.
    await users.sessions.register(session('ann', 2));
    expect(await users.sessions.sessionsOf('ann')).toContainEqual(old);
    await users.sessions.refresh([old]);
    expect(await raw.hget(keys.session('ann'), 'edge-9.1')).toBe(
      `{"login":${Math.floor(ms / 1000)},"active":${Math.floor((ms + 1234) / 1000) - Math.floor(ms / 1000)},"device":"tv"}`,
    );
    await users.sessions.remove('ann', 'edge-1.2');
    expect(await users.sessions.onlineCount()).toBe(1);
  });
});

describe('a plain Redis that goes and comes', () => {
  it('is unavailable at start and later heals; so after a restart', async () => {
    const servers = await startRedis();
    const states: RedisState[] = [];
    const changed = new Signal();
    const link = new RedisLink({
      urls: servers.urls,
      retryMsMax: 300,
      onState: (state) => {
        states.push(state);
        changed.notify();
      },
    });
    try {
      await servers.kill(0);
      const { sessions } = createRedisUsers({ link, prefix: 'tc' });
      await expect(sessions.start()).rejects.toMatchObject({ code: 'unavailable' });
      await expect(sessions.register(session('ann'))).rejects.toMatchObject({ code: 'unavailable' });
      expect(link.state).toBe('lost');

      await servers.restart(0);
      await changed.until('it is ready', () => link.state === 'ready');
      await sessions.start();
      await sessions.register(session('ann'));

      await servers.kill(0);
      for (let i = 0; i < 3; i++) {
        await expect(sessions.onlineCount()).rejects.toMatchObject({ code: 'unavailable' });
      }
      expect(link.state).toBe('lost');
      await servers.restart(0);
      await changed.until('it is ready again', () => link.state === 'ready');
      expect(await sessions.refresh([session('ann')])).toEqual(new Map([['ann', 0]]));
      expect(await sessions.onlineCount()).toBe(1);
      expect(states).toEqual(['lost', 'ready', 'lost', 'ready']);
    } finally {
      await link.close();
      await servers.stop();
    }
    await expect(link.start()).rejects.toBeInstanceOf(BrokerError);
  });
});

describe('users in a Redis Cluster', () => {
  let servers: RedisServers;
  let link: RedisLink;
  let raw: Cluster;
  let users: RedisUsers;
  const keys = createRedisKeys('tc');

  beforeAll(async () => {
    servers = await startRedisCluster();
    link = new RedisLink({ urls: [servers.urls[0]!, servers.urls[1]!] });
    raw = new Cluster([...servers.urls]);
    raw.on('error', () => undefined);
    // However many a fast machine pushes, no queue is full.
    users = createRedisUsers({ link, prefix: 'tc', queueMax: 1_000_000 });
    await users.sessions.start();
  });

  afterAll(async () => {
    raw.disconnect();
    await link.close();
    await servers.stop();
  });

  async function slotOf(key: string): Promise<number> {
    return Number(await servers.nodes[0]!.call('CLUSTER', 'KEYSLOT', key));
  }

  /** The number of the master that a key has at first. */
  async function homeOf(key: string): Promise<number> {
    return Math.floor((await slotOf(key)) / Math.ceil(16_384 / 3));
  }

  it('counts shards as Redis counts slots', async () => {
    for (const user of ['a', 'ann', '123456789', 'x'.repeat(128), 'a:b=c@d.e-f']) {
      expect(onlineShardOf(user)).toBe((await slotOf(user)) % 16);
    }
  });

  it('asks two masters once each for a connect', async () => {
    expect(link.isCluster).toBe(true);
    const homesOf = async (name: string): Promise<[number, number]> => [
      await homeOf(keys.session(name)),
      await homeOf(keys.online(onlineShardOf(name))),
    ];
    let user = 'user';
    let homes = await homesOf(user);
    while (homes[0] === homes[1]) homes = await homesOf((user += 'x'));
    // The first use of a script on a connection sends its text.
    for (let i = 0; i < 2; i++) await users.sessions.register(session(user));
    const masters = servers.nodes.slice(0, 3);
    for (const node of masters) await node.call('CONFIG', 'RESETSTAT');
    await users.sessions.register(session(user, 2));
    const asked = await Promise.all(masters.map((node) => node.call('INFO', 'commandstats')));
    const calls = asked.map((info) =>
      [...info.matchAll(/cmdstat_(\S+):calls=(\d+)/g)].map(([, name, count]) => `${name} ${count}`),
    );
    const scripted = calls[homes[0]]!;
    expect(scripted).toContain('evalsha 1');
    expect(scripted).not.toContain('zadd 1');
    const listed = calls[homes[1]]!;
    expect(listed).toContain('zadd 1');
    expect(calls.flat().filter((call) => /^(eval|evalsha|zadd) /.test(call))).toHaveLength(2);
  });

  it('goes on while the slot of a user moves to another master', async () => {
    const user = 'mover';
    const slot = String(await slotOf(user));
    const home = await homeOf(user);
    const from = servers.nodes[home]!;
    const to = servers.nodes[(home + 1) % 3]!;
    const [fromId, toId] = [await from.call('CLUSTER', 'MYID'), await to.call('CLUSTER', 'MYID')];
    const ids: number[] = [];
    let moved = false;
    const load = async (worker: number): Promise<void> => {
      for (let after = 0; after < 20; moved ? after++ : 0) {
        await users.sessions.register(session(user, worker));
        ids.push((await users.queue.push(user, json(ids.length), 60)).id);
      }
    };
    const workers = Promise.all([1, 2, 3].map(load));
    await to.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', fromId);
    await from.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', toId);
    // One key at a time: in between, scripts over both keys are answered TRYAGAIN.
    for (const key of [keys.session(user), keys.queue(user)]) {
      await from.call('MIGRATE', '127.0.0.1', String(to.port), key, '0', '5000', 'REPLACE');
    }
    await to.call('CLUSTER', 'SETSLOT', slot, 'NODE', toId);
    await from.call('CLUSTER', 'SETSLOT', slot, 'NODE', toId);
    moved = true;
    await workers;
    expect((await users.queue.pending(user, 0)).map(({ id }) => id)).toEqual(ids.toSorted((a, b) => a - b));
    expect(await users.sessions.sessionsOf(user)).toHaveLength(3);
  });

  it('fails with nothing but `unavailable` while a replica takes over, and loses nothing replicated', async () => {
    const names = Array.from({ length: 30 }, (_, i) => `user-${i}`);
    const slots = new Map<string, number>();
    for (const name of names) slots.set(name, await slotOf(`{${name}}`));
    const kept = new Map<string, number[]>(names.map((name) => [name, []]));
    const failures: unknown[] = [];
    let stopped = false;
    let pushes = 0;
    const progress = new Signal();
    // Replicas take writes in their order, so a write after the push that has arrived says that the push has.
    const isReplicated = async (name: string): Promise<boolean> => {
      const owner = raw.slots[slots.get(name)!]?.[0];
      const master = raw.nodes('master').find(({ options }) => `${options.host}:${options.port}` === owner);
      if (master === undefined) return false;
      try {
        await master.set(`mark:{${name}}`, '1');
        return (await master.wait(1, 1000)) === 1;
      } catch {
        return false; // The master is going or gone: nothing is promised.
      }
    };
    const load = async (name: string): Promise<void> => {
      while (!stopped) {
        try {
          const { id } = await users.queue.push(name, json(name), 3600);
          if (await isReplicated(name)) kept.get(name)?.push(id);
        } catch (error) {
          failures.push(error);
        }
        pushes++;
        progress.notify();
      }
    };
    const victim = await homeOf(keys.session(names[0]!));
    const workers = Promise.all(names.map(load));
    await progress.until('there is load', () => pushes > 100);
    await servers.kill(victim);
    await servers.healthy();
    const healed = Date.now();
    await Promise.all(names.map((name) => users.sessions.register(session(name))));
    const healedAfterMs = Date.now() - healed;
    const failed = failures.length;
    const soFar = pushes;
    await progress.until('there is load again', () => pushes > soFar + 200);
    stopped = true;
    await workers;
    console.log(`after the takeover: ${failed} failures, all served within ${healedAfterMs} ms`);
    for (const failure of failures) expect(failure).toMatchObject({ code: 'unavailable' });
    expect(failures).toHaveLength(failed);
    expect([...kept.values()].flat().length).toBeGreaterThan(100);
    for (const [name, ids] of kept) {
      const held = new Set((await users.queue.pending(name, 0)).map(({ id }) => id));
      expect(ids.filter((id) => !held.has(id))).toEqual([]);
    }
  });
});
