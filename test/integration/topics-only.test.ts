import { connect as connectNats } from 'nats';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startNode, type NodeProcess } from '../support/node-process.js';
import { startNats, type NatsServers } from '../support/servers/nats-kit.js';
import { connect } from '../support/client.js';

let servers: NatsServers;
let node: NodeProcess;

beforeAll(async () => {
  servers = await startNats();
  node = await startNode({ TOPICAST_NATS_URL: servers.urls.join(','), TOPICAST_API_KEY: 'key' });
});

afterAll(async () => {
  await node.stop();
  await servers.stop();
});

const call = (path: string, method = 'GET', body?: unknown) =>
  fetch(`${node.url}${path}`, {
    method,
    headers: { authorization: 'Bearer key', 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });

test('a cluster without Redis serves topics', async () => {
  expect(node.engine).toBe('cluster');
  const client = await connect({ port: node.port, token: 'key', topics: ['item.1'] });
  await client.frame('subscribed');
  const published = await call('/v1/topics/item.1/messages', 'POST', { price: 5 });
  expect(published.status).toBe(200);
  expect((await client.frame('msg')).topic).toBe('item.1');
  await client.close();
});

test.each([
  ['/v1/users/ann', 'GET', undefined],
  ['/v1/users/ann/messages', 'POST', { hello: 1 }],
  ['/v1/direct', 'POST', { userIds: ['ann'], data: 1 }],
  ['/v1/online', 'GET', undefined],
  ['/v1/online/users', 'GET', undefined],
])('it answers 501 for %s', async (path, method, body) => {
  const answer = await call(path, method, body);
  expect(answer.status).toBe(501);
  expect(await answer.json()).toMatchObject({ error: { code: 'not_implemented' } });
});

test('its statistics tell all but who is online', async () => {
  const answer = await call('/v1/stats');
  expect(answer.status).toBe(200);
  const told = (await answer.json()) as object;
  expect(told).toMatchObject({
    connections: 0,
    topics: [{ filters: ['item.1'] }],
    nodes: [{ id: node.nodeId }],
  });
  expect(told).not.toHaveProperty('users');
});

test('metrics tell of NATS, and of no Redis', async () => {
  const text = await (await call('/metrics')).text();
  expect(text).toContain('\ntopicast_nats_up 1\n');
  expect(text).not.toContain('topicast_redis_up');
});

test('what others publish on the subjects of nodes is counted', async () => {
  const name = 'topicast_cluster_messages_ignored_total';
  const ignored = async (): Promise<number> => {
    const [, count] = new RegExp(`^${name} (\\d+)$`, 'm').exec(await (await call('/metrics')).text()) ?? [];
    return Number(count);
  };
  expect(await ignored()).toBe(0);
  const stranger = await connectNats({ servers: [...servers.urls] });
  stranger.publish('tc.nodes', 'hello');
  stranger.publish('tc.nodes.ask', '{}', { reply: 'nowhere' });
  await stranger.drain();
  await expect.poll(ignored).toBe(2);
});
