import type { NatsConnection } from 'nats';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect, type TestClient } from '../support/client.js';
import {
  callsBetween,
  natsConnections,
  natsServerOf,
  publishAll,
  redisCalls,
  startTestCluster,
  type NatsConnectionState,
  type TestCluster,
} from '../support/cluster.js';
import { eventually } from '../support/signal.js';
import { apiKey, signToken } from '../support/tokens.js';

const sessionsPerNode = 500;
const lingerMs = 1000;

let cluster: TestCluster;
let watcher: NatsConnection;
/** Beacons so far by node, and requests to JetStream, as the test's own connection hears them. */
const beacons = new Map<string, number>();
const beaconsSeen = { total: 0 };
const apiCalls: string[] = [];

beforeAll(async () => {
  cluster = await startTestCluster(3, {
    TOPICAST_LINGER_MS: String(lingerMs),
    // One hour: what an audit asks is not what these tests count.
    TOPICAST_AUDIT_SEC: '3600',
  });
  watcher = await cluster.watchNats();
  watcher.subscribe('tc.nodes', {
    callback: (_error, message) => {
      const { id } = message.json<{ id: string }>();
      beacons.set(id, (beacons.get(id) ?? 0) + 1);
      beaconsSeen.total++;
    },
  });
  watcher.subscribe('$JS.API.>', { callback: (_error, message) => apiCalls.push(message.subject) });
  await watcher.flush();
});
afterAll(() => cluster.stop());

/** What each node's connection has carried, without beacons: read when none came meanwhile. */
async function traffic(): Promise<Map<string, { in: number; out: number }>> {
  for (;;) {
    const seen = beaconsSeen.total;
    const connections = await natsConnections(cluster.nats);
    await watcher.flush();
    if (seen !== beaconsSeen.total) continue;
    return new Map(
      cluster.nodes.map(({ nodeId }) => {
        const { in: sent, out } = connections.get(nodeId)!;
        const own = beacons.get(nodeId) ?? 0;
        // A node hears its own beacons too.
        return [nodeId, { in: sent - own, out: out - beaconsSeen.total }] as const;
      }),
    );
  }
}

async function sessionsOn(
  index: number,
  count: number,
  topics: (i: number) => string[],
): Promise<TestClient[]> {
  const { port } = cluster.nodes[index]!;
  const clients: TestClient[] = [];
  const one = async (i: number): Promise<void> => {
    const token = await signToken({ sub: `u${index}-${i}`, can: { sub: ['>'] } });
    const client = await connect({ port, token, topics: topics(i) });
    const awaited = topics(i).length;
    await client.until(
      'subscribed',
      () => client.ofType('subscribed').flatMap((f) => f.topics).length >= awaited,
    );
    clients.push(client);
  };
  for (let i = 0; i < count; i += 50) {
    await Promise.all(Array.from({ length: Math.min(50, count - i) }, (_, j) => one(i + j)));
  }
  return clients;
}

function hosted({ subjects }: NatsConnectionState): string[] {
  return subjects.filter((subject) => /^tc\.(live|out)\./.test(subject));
}

async function fixedSubscriptions(): Promise<number[]> {
  const connections = await natsConnections(cluster.nats);
  return cluster.nodes.map(({ nodeId }) => connections.get(nodeId)!.subjects.length);
}

const total = 10_000;

describe('what a topic message costs', () => {
  it.each([
    ['live', 'price', 0],
    // The publishing node is sent an acknowledgement for each as well.
    ['durable', 'item', total],
  ])(
    '%s: one NATS message in, one out for each hosting node, no Redis command',
    async (_kind, namespace, acks) => {
      const topics = Array.from({ length: 100 }, (_, i) => `${namespace}.t${i}`);
      const elsewhere = `${namespace}.elsewhere`;
      const fixed = await fixedSubscriptions();
      const groups = await Promise.all(
        cluster.nodes.map((_, n) => sessionsOn(n, sessionsPerNode, (i) => [topics[i % topics.length]!])),
      );
      // A topic that only the last node hosts, and one that nobody does.
      const last = await sessionsOn(2, 1, () => [elsewhere]);

      const connections = await natsConnections(cluster.nats);
      expect(cluster.nodes.map(({ nodeId }) => hosted(connections.get(nodeId)!).length)).toEqual([
        100, 100, 101,
      ]);

      const redisBefore = await redisCalls(cluster.redis);
      const before = await traffic();
      const messages = Array.from({ length: total }, (_, n) => ({ topic: topics[n % 100]!, data: n }));
      await publishAll(cluster.nodes[0]!.port, messages);
      const clients = groups.flat();
      await Promise.all(
        clients.map((client) => client.until('all came', () => client.messages.length >= 100)),
      );
      await Promise.all(clients.map((client) => client.ping()));
      expect(clients.every((client) => client.messages.length === 100)).toBe(true);

      const differences = async () => {
        const after = await traffic();
        return cluster.nodes.map(({ nodeId }) => {
          const [from, to] = [before.get(nodeId)!, after.get(nodeId)!];
          return [to.in - from.in, to.out - from.out];
        });
      };
      const expected = [
        [total, total + acks],
        [0, total],
        [0, total],
      ];
      await eventually('the counts of NATS are in', async () => {
        return JSON.stringify(await differences()) === JSON.stringify(expected);
      }).catch(async () => expect(await differences()).toEqual(expected));
      expect(callsBetween(redisBefore, await redisCalls(cluster.redis))).toEqual({});

      // Of a topic that only one node hosts the others hear nothing.
      const beforeOne = await traffic();
      await publishAll(
        cluster.nodes[0]!.port,
        Array.from({ length: 1000 }, (_, n) => ({ topic: elsewhere, data: n })),
      );
      await last[0]!.until('all came', () => last[0]!.messages.length === 1000);
      const afterOne = await traffic();
      const outs = cluster.nodes.map(({ nodeId }) => afterOne.get(nodeId)!.out - beforeOne.get(nodeId)!.out);
      expect(outs).toEqual([acks === 0 ? 0 : 1000, 0, 1000]);

      await Promise.all([...clients, ...last].map((client) => client.cut()));
      await eventually('nothing is hosted any more', async () => {
        return JSON.stringify(await fixedSubscriptions()) === JSON.stringify(fixed);
      });
      expect([...(await natsConnections(cluster.nats)).values()].flatMap(hosted)).toEqual([]);
    },
  );
});

describe('what a session costs in Redis', () => {
  it('is two calls to connect, one for each key, and at most 0.05 a minute to keep', async () => {
    // Each server is sent a script as text once.
    for (const client of await sessionsOn(0, 100, () => [])) await client.cut();
    // Also for Redis: what it is told of their end must not count below.
    await eventually('they are gone', async () => {
      const answer = await fetch(`${cluster.nodes[0]!.url}/v1/online`, {
        headers: { authorization: `Bearer ${apiKey}` },
      });
      const { connections, users } = (await answer.json()) as { connections: number; users: number };
      return connections === 0 && users === 0;
    });
    const before = await redisCalls(cluster.redis);
    const clients = await sessionsOn(0, 1000, () => []);
    const connected = callsBetween(before, await redisCalls(cluster.redis));
    // Inside the script: the clock, what the user has, the write and its expiry, and what waits.
    const inside = ['time', 'hgetall', 'hset', 'hget', 'expire'];
    expect(
      Object.keys(connected)
        .filter((name) => !inside.includes(name))
        .sort(),
    ).toEqual(['evalsha', 'zadd']);
    expect([connected['evalsha'], connected['zadd']]).toEqual([1000, 1000]);

    // A node that was cut off from NATS compares all its sessions with Redis at once: one whole refresh.
    const beforeRefresh = await redisCalls(cluster.redis);
    await cluster.nats.restart(await natsServerOf(cluster.nats, cluster.nodes[0]!.nodeId));
    await eventually('every session was refreshed', async () => {
      const calls = callsBetween(beforeRefresh, await redisCalls(cluster.redis));
      // Each of two batches ends with the list of those online, on sixteen keys.
      return (calls['zadd'] ?? 0) >= 32;
    }).catch(async () => expect(callsBetween(beforeRefresh, await redisCalls(cluster.redis))).toEqual({}));
    const refreshed = callsBetween(beforeRefresh, await redisCalls(cluster.redis));
    // Inside the scripts each session is written.
    const times = Math.round((refreshed['hset'] ?? 0) / 1000);
    const calls = ['eval', 'evalsha', 'zadd', 'zremrangebyscore'].reduce(
      (sum, name) => sum + (refreshed[name] ?? 0),
      0,
    );
    // One in each third of the ten minutes that a session lives.
    const perMinute = calls / times / 1000 / (200 / 60);
    console.log(
      `${calls} calls in ${times} refreshes of 1,000 sessions: ${perMinute.toFixed(3)} a session and minute`,
    );
    expect(perMinute).toBeLessThanOrEqual(0.05);
    await Promise.all(clients.map((client) => client.cut()));
  });
});
