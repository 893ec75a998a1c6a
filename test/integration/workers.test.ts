import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect } from '../support/client.js';
import { freePort, startNode } from '../support/node-process.js';
import { startNats, type NatsServers } from '../support/servers/nats-kit.js';
import { eventually } from '../support/signal.js';

let servers: NatsServers;
beforeAll(async () => {
  servers = await startNats();
});
afterAll(() => servers.stop());

interface NodeInfo {
  readonly id: string;
  readonly url: string;
  readonly connections: number;
}

/** The nodes, as whichever of them answers sees them. */
async function nodesOf(url: string): Promise<readonly NodeInfo[]> {
  const response = await fetch(`${url}/v1/nodes`, { headers: { connection: 'close' } });
  expect(response.status).toBe(200);
  return ((await response.json()) as { nodes: NodeInfo[] }).nodes;
}

describe('two workers', () => {
  test('share a port and its connections, and a message reaches those of both', async () => {
    const env = {
      TOPICAST_NATS_URL: servers.urls.join(),
      TOPICAST_WORKERS: '2',
      TOPICAST_NODE_NAME: 'shop',
      TOPICAST_PREFIX: 'w1',
      TOPICAST_DRAIN_SEC: '0',
    };
    const supervisor = await startNode(env);
    const { url } = supervisor;
    expect(supervisor.stdout.trimEnd().split('\n')).toHaveLength(1);
    expect(supervisor.nodeId).toMatch(/^shop-w1-[0-9A-Za-z]{5}$/);
    await eventually('both are seen', async () => (await nodesOf(url)).length === 2);
    const clients = await Promise.all(
      Array.from({ length: 40 }, () => connect({ port: supervisor.port, topics: ['news.a'] })),
    );
    await eventually('all connections are told of', async () => {
      const counts = (await nodesOf(url)).map(({ connections }) => connections);
      return counts.length === 2 && counts.every((count) => count > 0) && counts[0]! + counts[1]! === 40;
    });
    await Promise.all(clients.map((client) => client.frame('subscribed')));
    const info = (await (await fetch(`${url}/v1/topics/news.a`)).json()) as unknown;
    expect(info).toEqual({ topic: 'news.a', subscribers: 40 });
    await clients[0]!.ask('published', {
      type: 'publish',
      topic: 'news.a',
      data: { format: 'json', text: '1' },
    });
    await Promise.all(clients.map((client) => client.frame('msg')));
    expect(await supervisor.stop()).toBe(0);
    expect((await Promise.all(clients.map((client) => client.ended()))).map(({ code }) => code)).toEqual(
      Array(40).fill(4000),
    );
  });

  test('come back when one is killed', async () => {
    const supervisor = await startNode({
      TOPICAST_NATS_URL: servers.urls.join(),
      TOPICAST_WORKERS: '2',
      TOPICAST_PREFIX: 'w2',
    });
    const { url } = supervisor;
    await eventually('both are seen', async () => (await nodesOf(url)).length === 2);
    const before = (await nodesOf(url)).map(({ id }) => id);
    const pid = await workerPid(supervisor.pid);
    process.kill(pid, 'SIGKILL');
    await supervisor.waitFor('stderr', /a worker was started again/);
    await eventually('a new one is seen', async () => {
      const ids = (await nodesOf(url).catch(() => [])).map(({ id }) => id);
      return ids.some((id) => !before.includes(id)) && ids.some((id) => before.includes(id));
    });
    expect(await supervisor.stop()).toBe(0);
  });

  test('leave a port alone that is in use', async () => {
    const port = await freePort();
    const first = await startNode({ TOPICAST_PORT: String(port) });
    const second = startNode({
      TOPICAST_NATS_URL: servers.urls.join(),
      TOPICAST_WORKERS: '2',
      TOPICAST_PORT: String(port),
    });
    await expect(second).rejects.toThrow(`cannot listen on 127.0.0.1:${port}`);
    expect(await first.stop()).toBe(0);
  });
});

/** One of the processes that a process has started. */
async function workerPid(parent: number): Promise<number> {
  const { readFile } = await import('node:fs/promises');
  const children = await readFile(`/proc/${parent}/task/${parent}/children`, 'utf8');
  return Number(children.trim().split(' ')[0]);
}
