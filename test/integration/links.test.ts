import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect } from '../support/client.js';
import { EventStream, requestStream } from '../support/event-stream.js';
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

test('metrics and welcome tell whether NATS is in reach, and topics are answered when it is back', async () => {
  const join = () => connect({ port: node.port, token: apiKey, topics: ['price.late', 'item.late'] });
  const before = await connect({ port: node.port, token: apiKey });
  expect(await before.frame('welcome')).not.toHaveProperty('degraded');
  await nats.kill(0);
  await untilLinks(0, 1);
  const late = await join();
  expect(await late.frame('welcome')).toMatchObject({ degraded: ['topics'] });
  const authorization = `Bearer ${apiKey}`;
  const stream = new EventStream(await requestStream(node.port, 'topics=price.late', { authorization }));
  const { data } = await stream.named('welcome');
  expect(JSON.parse(data)).toMatchObject({ degraded: ['topics'] });
  await late.ping();
  expect(late.ofType('subscribed')).toEqual([]);
  await nats.restart(0);
  await untilLinks(1, 1);
  const told = () => late.ofType('subscribed').flatMap(({ topics }) => topics.map(({ topic }) => topic));
  await late.until('both topics are answered', () => told().length === 2);
  stream.close();
  await Promise.all([before.close(), late.close()]);
});

test('what a NATS server that hangs does not take is not accepted', async () => {
  const path = '/v1/topics/price.hung/messages';
  expect((await callApi(node.port, 'POST', path, { n: 1 })).status).toBe(202);
  const client = await connect({ port: node.port, token: apiKey, topics: ['price.hung'] });
  await client.frame('subscribed');
  await nats.kill(0, 'SIGSTOP');
  try {
    client.send({ type: 'publish', req: 1, topic: 'price.hung', data: { format: 'json', text: '{"n":2}' } });
    const messages = [{ topic: 'price.hung', data: { n: 3 } }];
    const [single, batch, error] = await Promise.all([
      callApi(node.port, 'POST', path, { n: 4 }),
      callApi(node.port, 'POST', '/v1/publish', { messages }),
      client.frame('error'),
    ]);
    for (const answer of [single, batch]) {
      expect(answer).toMatchObject({ status: 503, body: { error: { code: 'unavailable' } } });
    }
    expect(error).toMatchObject({ req: 1, code: 'unavailable' });
  } finally {
    await nats.kill(0, 'SIGCONT');
  }
  await untilLinks(1, 1);
  await eventually('it is taken again', async () => {
    return (await callApi(node.port, 'POST', path, { n: 5 })).status === 202;
  });
  await client.close();
});
