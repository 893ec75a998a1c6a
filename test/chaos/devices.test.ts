import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect, valueOf, type TestClient } from '../support/client.js';
import { callApi, push, startTestCluster, type TestCluster } from '../support/cluster.js';
import { eventually } from '../support/signal.js';
import { signToken } from '../support/tokens.js';

let cluster: TestCluster;
beforeAll(async () => {
  cluster = await startTestCluster(3);
});
afterAll(() => cluster.stop());

async function device(user: string, node: number): Promise<TestClient> {
  const token = await signToken({ sub: user });
  return connect({ port: cluster.nodes[node]!.port, token, device: `d${node}` });
}

function directs(client: TestClient): { id: number; data: unknown }[] {
  return client.ofType('direct').map(({ data, id }) => ({ id: id!, data: valueOf(data) }));
}

async function queued(user: string): Promise<number> {
  // Whoever connects anew is sent all that waits, and nothing else.
  const client = await device(user, 1);
  await client.ping();
  const count = directs(client).length;
  await client.close();
  return count;
}

describe('messages to one user', () => {
  it('reach devices on three nodes, and one acknowledgement settles them', async () => {
    const devices = await Promise.all([0, 1, 2].map((node) => device('three', node)));
    const answer = await push(cluster.nodes[0]!.port, 'three', { n: 1 });
    expect(answer).toMatchObject({ status: 200, body: { status: 'sent', sessions: 3 } });
    const frames = await Promise.all(devices.map((client) => client.frame('direct')));
    expect(frames.map(({ id }) => id)).toEqual([answer.body.id, answer.body.id, answer.body.id]);
    devices[2]!.send({ type: 'ack', ids: [answer.body.id!] });
    await devices[2]!.ping();
    expect(await queued('three')).toBe(0);
    expect(devices.map((client) => directs(client).length)).toEqual([1, 1, 1]);
    await Promise.all(devices.map((client) => client.close()));
  });

  it('wait for a user who is away, and come in order at the next connection', async () => {
    const ids: number[] = [];
    for (let n = 0; n < 20; n++) {
      const { body } = await push(cluster.nodes[n % 3]!.port, 'away', n);
      expect(body).toMatchObject({ status: 'queued', sessions: 0 });
      ids.push(body.id!);
    }
    const client = await device('away', 2);
    await client.until('all came', () => directs(client).length === 20);
    await client.ping();
    expect(directs(client)).toEqual(ids.map((id, n) => ({ id, data: n })));
    client.send({ type: 'ack', ids });
    await client.ping();
    expect(await queued('away')).toBe(0);
    await client.close();
  });

  it('keep their order over three publishing nodes, each once', async () => {
    const devices = await Promise.all([0, 1, 2].map((node) => device('busy', node)));
    const answers = await Promise.all(
      Array.from({ length: 300 }, (_, n) => push(cluster.nodes[n % 3]!.port, 'busy', n)),
    );
    const ids = answers.map(({ body }) => body.id!).sort((a, b) => a - b);
    for (const client of devices) {
      await client.until('all came', () => directs(client).length >= 300);
      await client.ping();
      expect(directs(client).map(({ id }) => id)).toEqual(ids);
    }
    await Promise.all(devices.map((client) => client.close()));
  });

  it('are sent again when the node dies before they are acknowledged, and nobody is taken for a ghost', async () => {
    const stays = await device('crash', 1);
    const dies = await device('crash', 0);
    const { body } = await push(cluster.nodes[2]!.port, 'crash', 'first');
    await dies.frame('direct');
    await stays.frame('direct');
    expect(body.sessions).toBe(2);
    await stays.close();
    await cluster.nodes[0]!.kill();
    await dies.ended();

    // The record of the session is still there; the first push after the crash finds out that nobody is.
    const next = await push(cluster.nodes[2]!.port, 'crash', 'second');
    expect(next.body).toMatchObject({ status: 'queued', sessions: 0 });
    const thrown = await push(cluster.nodes[2]!.port, 'crash', 'third', '?queue=false');
    expect(thrown.body).toEqual({ status: 'dropped', sessions: 0 });
    const seen = await callApi<{ online: boolean; sessions: unknown[] }>(
      cluster.nodes[2]!.port,
      'GET',
      '/v1/users/crash',
    );
    expect(seen.body).toMatchObject({ online: false, sessions: [] });

    const back = await device('crash', 1);
    await back.until('both came', () => directs(back).length === 2);
    await back.ping();
    expect(directs(back)).toEqual([
      { id: body.id, data: 'first' },
      { id: next.body.id, data: 'second' },
    ]);
    back.send({ type: 'ack', ids: [body.id!, next.body.id!] });
    await back.ping();
    expect(await queued('crash')).toBe(0);
    await back.close();
    await cluster.startNode(0);
  });

  it('are found in the queue after a cut from NATS, though the hint was not heard', async () => {
    const client = await device('deaf', 0);
    // All servers at once, so that the push below is queued while no node hears another.
    for (const index of [0, 1, 2]) await cluster.nats.kill(index);
    await eventually('the nodes have noticed', async () => {
      const answers = await Promise.all(
        cluster.nodes.map(({ port }) => fetch(`http://127.0.0.1:${port}/readyz`)),
      );
      return answers.every(({ status }) => status === 503);
    });
    const { body } = await push(cluster.nodes[1]!.port, 'deaf', 'hello');
    expect(body.id).toBeTypeOf('number');
    expect(directs(client)).toEqual([]);
    await Promise.all([0, 1, 2].map((index) => cluster.nats.restart(index)));
    await client.frame('direct');
    expect(directs(client)).toEqual([{ id: body.id, data: 'hello' }]);
    await client.close();
  });
});
