import { afterAll, beforeAll, expect, it } from 'vitest';
import { callApi } from '../support/cluster.js';
import { handshake, TestClient } from '../support/client.js';
import { startNode, type NodeProcess } from '../support/node-process.js';
import { startNats, type NatsServers } from '../support/servers/nats-kit.js';
import { startRedis, type RedisServers } from '../support/servers/redis-kit.js';
import { authEnv, signToken } from '../support/tokens.js';

let nats: NatsServers;
let redis: RedisServers;
const nodes: NodeProcess[] = [];
beforeAll(async () => {
  [nats, redis] = await Promise.all([startNats(), startRedis()]);
});
afterAll(async () => {
  await Promise.all(nodes.map((node) => node.stop()));
  await Promise.all([nats.stop(), redis.stop()]);
});

async function start(): Promise<NodeProcess> {
  const node = await startNode({
    ...authEnv,
    TOPICAST_NATS_URL: nats.urls.join(','),
    TOPICAST_REDIS_URL: redis.urls.join(','),
    TOPICAST_DRAIN_SEC: '0',
  });
  nodes.push(node);
  return node;
}

it('a token that was blocked before a node started is refused by it from its first handshake on', async () => {
  const first = await start();
  const [token, other] = [await signToken({ sub: 'u1' }), await signToken({ sub: 'u2' })];
  const client = new TestClient({ port: first.port, token });
  await client.frame('welcome');
  expect((await callApi(first.port, 'DELETE', '/v1/users/u1/sessions')).body).toEqual({ closed: 1 });
  await client.ended();
  const statusOf = async (node: NodeProcess, shown: string): Promise<number> =>
    (await handshake(node.port, '', { authorization: `Bearer ${shown}` })).status;
  for (let i = 0; i < 3; i++) {
    const late = await start();
    expect(await statusOf(late, token)).toBe(401);
    expect(await statusOf(late, other)).not.toBe(401);
  }
});
