import { afterAll, beforeAll, expect, test } from 'vitest';
import { startNode, type NodeProcess } from '../support/node-process.js';
import { startNats, type NatsServers } from '../support/servers/nats-kit.js';
import { startRedis, type RedisServers } from '../support/servers/redis-kit.js';
import { callApi } from '../support/cluster.js';
import { scrape } from '../support/scrape.js';
import { eventually } from '../support/signal.js';
import { apiKey } from '../support/tokens.js';

let nats: NatsServers;
let redis: RedisServers;
let node: NodeProcess;

beforeAll(async () => {
  [nats, redis] = await Promise.all([startNats(), startRedis()]);
  node = await startNode({
    TOPICAST_NATS_URL: nats.urls.join(','),
    TOPICAST_REDIS_URL: redis.urls.join(','),
    TOPICAST_API_KEY: apiKey,
  });
});

afterAll(async () => {
  await node.stop();
  await Promise.all([nats.stop(), redis.stop()]);
});

const links = (): Promise<number[]> => scrape(node.port, 'nats_up', 'redis_up');
const untilLinks = (...due: number[]): Promise<void> =>
  eventually(`nats, redis are ${due.join()}`, async () => (await links()).join() === due.join(), 30_000);

interface Stats {
  readonly users?: number;
  readonly nodes: readonly { readonly id: string }[];
}

test('metrics tell whether Redis is in reach, and statistics do without it', async () => {
  expect(await links()).toEqual([1, 1]);
  expect((await callApi<Stats>(node.port, 'GET', '/v1/stats')).body.users).toBe(0);
  await redis.kill(0);
  // It counts as lost after calls in a row that failed to the end of their retries.
  const answers = await Promise.all([1, 2, 3].map(() => callApi<Stats>(node.port, 'GET', '/v1/stats')));
  for (const { body, status } of answers) {
    expect(status).toBe(200);
    expect(body).toMatchObject({ nodes: [{ id: node.nodeId }] });
    expect(body).not.toHaveProperty('users');
  }
  expect((await callApi(node.port, 'GET', '/v1/online')).status).toBe(503);
  await untilLinks(1, 0);
  await redis.restart(0);
  await untilLinks(1, 1);
  expect((await callApi<Stats>(node.port, 'GET', '/v1/stats')).body.users).toBe(0);
});

test('metrics tell whether NATS is in reach', async () => {
  await nats.kill(0);
  await untilLinks(0, 1);
  await nats.restart(0);
  await untilLinks(1, 1);
});
