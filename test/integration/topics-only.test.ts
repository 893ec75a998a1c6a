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
