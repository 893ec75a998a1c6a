import { cpSync, rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { SubscribedTopic } from '../../protocol/frames.js';
import { connect, valueOf, type TestClient } from '../support/client.js';
import { callApi } from '../support/cluster.js';
import { startNode, type NodeProcess } from '../support/node-process.js';
import { startNats, type NatsServers } from '../support/servers/nats-kit.js';
import { authEnv, signToken } from '../support/tokens.js';

let servers: NatsServers;
let node: NodeProcess;

beforeAll(async () => {
  servers = await startNats();
  const env = { ...authEnv, TOPICAST_NATS_URL: servers.urls.join(','), TOPICAST_AUDIT_SEC: '1' };
  node = await startNode({ ...env, TOPICAST_LOG_LEVEL: 'error' });
});
afterAll(async () => {
  await node.stop();
  await servers.stop();
});

async function store(from: number, to: number): Promise<void> {
  for (let i = from; i <= to; i++) await callApi(node.port, 'POST', '/v1/topics/item.1/messages', i);
}

/** Publishing fails while the server is away, and is tried until the node has it again. */
async function storeAgain(value: number): Promise<void> {
  await expect
    .poll(() => callApi(node.port, 'POST', '/v1/topics/item.1/messages', value), { timeout: 20_000 })
    .toMatchObject({ status: 200 });
}

async function whileStopped(meanwhile: () => void): Promise<void> {
  // SIGTERM: what was stored is on the disk.
  await servers.kill(0, 'SIGTERM');
  meanwhile();
  await servers.restart(0);
  await servers.healthy();
}

function values(client: TestClient): unknown[] {
  return client.messages.map(({ data }) => valueOf(data));
}

it('an older copy of the stream that was restored is told to every client, which then receives what the new one holds', async () => {
  const folder = servers.nodes[0]!.store;
  const token = await signToken({ sub: 'ann', can: { sub: ['>'] } });
  await store(1, 5);
  await whileStopped(() => cpSync(folder, `${folder}.copy`, { recursive: true }));
  await storeAgain(6);
  const clients = await Promise.all(
    [['item.1'], ['item.*'], ['item.quiet']].map((topics) => connect({ port: node.port, token, topics })),
  );
  const [exact, pattern] = clients as [TestClient, TestClient, TestClient];
  const epoch = epochOf((await exact.frame('subscribed')).topics[0]);
  await pattern.frame('subscribed');
  await store(7, 9);
  for (const client of [exact, pattern]) await client.until('three', () => client.messages.length === 3);
  const old = exact.messages.at(-1)!.offset!;
  await clients[2]!.frame('subscribed');

  await whileStopped(() => {
    rmSync(folder, { recursive: true });
    cpSync(`${folder}.copy`, folder, { recursive: true });
    rmSync(`${folder}.copy`, { recursive: true });
  });
  for (const client of clients) {
    const told = await client.frame('subscribed', ({ topics }) => epochOf(topics[0]) !== epoch);
    expect(told.topics).toEqual([expect.objectContaining({ recovered: false })]);
  }
  await storeAgain(100);
  for (const client of [exact, pattern]) {
    await client.until('the new one', () => values(client).includes(100));
    const last = client.messages.at(-1)!;
    expect(valueOf(last.data)).toBe(100);
    expect(last.offset!).toBeLessThan(old);
  }
  const late = await connect({ port: node.port, token, topics: [`item.1@${epoch}:${old}`] });
  const [answer] = (await late.frame('subscribed')).topics;
  expect(answer).toMatchObject({ recovered: false });
  expect(epochOf(answer)).not.toBe(epoch);
  for (const client of [...clients, late]) client.socket.terminate();
});

function epochOf(topic: SubscribedTopic | undefined): string {
  if (topic === undefined || !('epoch' in topic)) throw new Error('an answer without an epoch');
  return topic.epoch;
}
