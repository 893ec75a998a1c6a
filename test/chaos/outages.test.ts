import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect, valueOf } from '../support/client.js';
import {
  callApi,
  callsBetween,
  natsServerOf,
  push,
  redisCalls,
  startTestCluster,
  type TestCluster,
} from '../support/cluster.js';
import { ResumingClient } from '../support/resuming-client.js';
import { eventually } from '../support/signal.js';
import { signToken } from '../support/tokens.js';
import { Traffic } from '../support/traffic.js';

let cluster: TestCluster;
beforeAll(async () => {
  cluster = await startTestCluster(3, { TOPICAST_AUDIT_SEC: '2' });
});
afterAll(() => cluster.stop());

/** Clients that must not lose their connections, ten on each node, and traffic on their topics. */
async function steady(
  name: string,
): Promise<{ clients: ResumingClient[]; traffic: Traffic; settle: () => Promise<void> }> {
  const topics = Array.from({ length: 20 }, (_, i) => `item.${name}${i}`);
  const clients = Array.from({ length: 30 }, (_, i) => {
    const { port } = cluster.nodes[i % 3]!;
    return new ResumingClient({ user: `${name}${i}`, topics, nextPort: () => port, reconnects: false });
  });
  await Promise.all(clients.map((client) => client.connect()));
  let calls = 0;
  const port = () => cluster.nodes[calls++ % 3]!.port;
  const traffic = new Traffic({ topics, rate: 200, port, oneByOne: true }).start();
  await traffic.more(100);
  const settle = async (): Promise<void> => {
    await traffic.stop();
    for (const client of clients) {
      await client.signal.until(`${client.user} has all`, () => client.total >= traffic.total, 60_000);
      expect(client.faults).toEqual([]);
      expect(client.counts).toEqual(traffic.sent);
      client.cut();
    }
  };
  return { clients, traffic, settle };
}

describe('connected clients stay and lose nothing', () => {
  it('when a Redis master is killed; messages to users are back with its replica', async () => {
    const { settle, traffic } = await steady('redis');
    const token = await signToken({ sub: 'pushed' });
    const device = await connect({ port: cluster.nodes[1]!.port, token });
    await cluster.redis.kill(0);
    const refusedBefore = new Map(traffic.refused);
    let pushed = 0;
    const until = Date.now() + 60_000;
    // Each key class meets the lost master for a third of its users: one user of each is pushed to until all are taken again.
    const users = ['pushed', 'a', 'b', 'c', 'd', 'e', 'f'];
    for (let taken = 0; taken < users.length && Date.now() < until;) {
      const answers = await Promise.all(users.map((user) => push(cluster.nodes[0]!.port, user, ++pushed)));
      taken = answers.filter(({ status }) => status === 200).length;
    }
    await traffic.more(100);
    expect(traffic.refused).toEqual(refusedBefore);
    await device.until('a push came', () => device.ofType('direct').length > 0);
    const ids = device.ofType('direct').map(({ id }) => id!);
    expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b));
    await device.close();
    await settle();
    await cluster.redis.restart(0);
    await cluster.redis.healthy();
  });

  it('when a NATS server is killed and comes back', async () => {
    const { settle, traffic } = await steady('nats');
    const index = await natsServerOf(cluster.nats, cluster.nodes[0]!.nodeId);
    await cluster.nats.kill(index);
    await traffic.more(200);
    await cluster.nats.restart(index);
    await traffic.more(200);
    console.log(`${traffic.total} messages, refused by status`, traffic.refused);
    await settle();
  });

  it('when all of NATS is away: publishing is refused, and all heals without a restart', async () => {
    const { clients, settle, traffic } = await steady('away');
    await Promise.all([0, 1, 2].map((index) => cluster.nats.kill(index)));
    await eventually('the nodes have noticed', async () => {
      const answers = await Promise.all(
        cluster.nodes.map(({ port }) => fetch(`http://127.0.0.1:${port}/readyz`)),
      );
      return answers.every(({ status }) => status === 503);
    });
    for (const topic of ['item.away0', 'price.away']) {
      const path = `/v1/topics/${topic}/messages`;
      const refused = await callApi<{ error: { code: string } }>(cluster.nodes[1]!.port, 'POST', path, {
        n: 1,
      });
      expect(refused).toMatchObject({ status: 503, body: { error: { code: 'unavailable' } } });
    }
    expect(clients.reduce((sum, client) => sum + client.closes, 0)).toBe(0);
    await Promise.all([0, 1, 2].map((index) => cluster.nats.restart(index)));
    await traffic.more(200);
    console.log(`${traffic.total} messages, refused by status`, traffic.refused);
    await settle();
  });

  it('when all of Redis is away: topics need none of it', async () => {
    const { settle, traffic } = await steady('noredis');
    await Promise.all(cluster.redis.nodes.map((_, index) => cluster.redis.kill(index, 'SIGSTOP')));
    const refusedBefore = new Map(traffic.refused);
    await traffic.more(400);
    expect(traffic.refused).toEqual(refusedBefore);
    // Whoever comes now is welcomed without.
    const token = await signToken({ sub: 'late', can: { sub: ['>'] } });
    const late = await connect({ port: cluster.nodes[0]!.port, token, topics: ['price.now'] });
    expect((await late.frame('welcome')).degraded).toEqual(['direct']);
    await late.frame('subscribed');
    await callApi(cluster.nodes[1]!.port, 'POST', '/v1/topics/price.now/messages', 7);
    expect(valueOf((await late.frame('msg')).data)).toBe(7);
    await Promise.all(cluster.redis.nodes.map((_, index) => cluster.redis.kill(index, 'SIGCONT')));
    await settle();
    // And is known as soon as Redis is.
    await eventually('the late one is registered', async () => {
      const { body, status } = await callApi<{ online: boolean }>(
        cluster.nodes[2]!.port,
        'GET',
        '/v1/users/late',
      );
      return status === 200 && body.online;
    });
    await late.close();
    expect(callsBetween(new Map(), await redisCalls(cluster.redis))['evalsha']).toBeGreaterThan(0);
  });
});
