import { beforeAll, describe, expect, test } from 'vitest';
import { codecs, connect, valueOf, type ClientOptions, type TestClient } from '../support/client.js';
import { startNode, type NodeProcess } from '../support/node-process.js';
import { apiKey, authEnv, signToken } from '../support/tokens.js';

let node: NodeProcess;
beforeAll(async () => {
  node = await startNode({ ...authEnv, TOPICAST_DIRECT_QUEUE_MAX: '5' });
});

interface Pushed {
  readonly status: number;
  readonly body: { id?: number; status?: string; sessions?: number; error?: { code: string } };
}

async function push(userId: string, data: unknown, query = ''): Promise<Pushed> {
  const response = await fetch(`${node.url}/v1/users/${userId}/messages${query}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(data),
  });
  return { status: response.status, body: (await response.json()) as Pushed['body'] };
}

async function device(sub: string, options: Partial<ClientOptions> = {}): Promise<TestClient> {
  const token = await signToken({ sub, can: { sub: ['>'] } });
  return connect({ port: node.port, token, ...options });
}

const directs = (client: TestClient) =>
  client.ofType('direct').map((frame) => [frame.id, valueOf(frame.data)]);

/** Acknowledges, and waits until that has been handled. */
async function acknowledge(client: TestClient, ids: readonly number[]): Promise<void> {
  client.send({ type: 'ack', ids });
  await client.ping();
}

describe.each(codecs.map((codec) => [codec.name, codec] as const))(
  'direct messages of %s clients',
  (name, codec) => {
    test('reach each device, and are over when one has acknowledged', async () => {
      const user = `two-${name}`;
      const phone = await device(user, { codec, device: 'phone' });
      const laptop = await device(user, { codec, device: 'laptop' });
      const stranger = await device(`stranger-${name}`, { codec });
      const pushed = await push(user, { hello: 1 });
      expect(pushed).toMatchObject({ status: 200, body: { status: 'sent', sessions: 2 } });
      const { id } = pushed.body;
      for (const client of [phone, laptop]) expect((await client.frame('direct')).id).toBe(id);
      expect(directs(phone)).toEqual([[id, { hello: 1 }]]);
      await acknowledge(phone, [id!]);
      const later = await device(user, { codec });
      await later.ping();
      expect(directs(later)).toEqual([]);
      await stranger.ping();
      expect(directs(stranger)).toEqual([]);
      for (const client of [phone, laptop, later, stranger]) await client.close();
    });

    test('wait for an absent user, come in order at connect and again until they are acknowledged', async () => {
      const user = `absent-${name}`;
      const ids: number[] = [];
      for (let i = 0; i < 3; i++) {
        const { body } = await push(user, { i });
        expect(body).toMatchObject({ status: 'queued', sessions: 0 });
        ids.push(body.id!);
      }
      const expected = ids.map((id, i) => [id, { i }]);
      const first = await device(user, { codec, topics: ['news.a'] });
      await first.frame('direct', (frame) => frame.id === ids[2]);
      // What is new comes after what waited.
      const { body } = await push(user, { i: 3 });
      await first.frame('direct', (frame) => frame.id === body.id);
      expect(directs(first)).toEqual([...expected, [body.id, { i: 3 }]]);
      await acknowledge(first, [ids[1]!]);
      await first.cut();
      const second = await device(user, { codec });
      await second.frame('direct', (frame) => frame.id === body.id);
      expect(directs(second)).toEqual([expected[0], expected[2], [body.id, { i: 3 }]]);
      await acknowledge(second, [...ids, body.id!]);
      await second.close();
      const third = await device(user, { codec });
      await third.ping();
      expect(directs(third)).toEqual([]);
      await third.close();
    });

    test('that are pushed while the user connects come once each, in order', async () => {
      const user = `race-${name}`;
      for (let round = 0; round < 10; round++) {
        const pushes: Promise<Pushed>[] = [];
        const connecting = device(user, { codec });
        for (let i = 0; i < 5; i++) pushes.push(push(user, { round, i }));
        const ids = (await Promise.all(pushes)).map(({ body }) => body.id!).sort((a, b) => a - b);
        const client = await connecting;
        await client.frame('direct', (frame) => frame.id === ids[4]);
        await client.ping();
        expect(client.ofType('direct').map((frame) => frame.id)).toEqual(ids);
        await acknowledge(client, ids);
        await client.close();
      }
    });

    test('that find the queue full are refused, and none is lost for them', async () => {
      const user = `full-${name}`;
      for (let i = 0; i < 5; i++) expect((await push(user, { i })).status).toBe(200);
      const refused = await push(user, { i: 5 });
      expect(refused).toMatchObject({ status: 409, body: { error: { code: 'queue_full' } } });
      const client = await device(user, { codec });
      await client.until('five', () => client.ofType('direct').length >= 5);
      await client.ping();
      expect(directs(client).map(([, data]) => data)).toEqual([0, 1, 2, 3, 4].map((i) => ({ i })));
      await acknowledge(client, [client.ofType('direct')[0]!.id!]);
      expect((await push(user, { i: 6 })).status).toBe(200);
      await client.close();
    });

    test('that are not to be queued reach who is there, and nobody else', async () => {
      const user = `now-${name}`;
      expect((await push(user, { i: 0 }, '?queue=false')).body.sessions).toBe(0);
      const client = await device(user, { codec });
      await push(user, { i: 1 }, '?queue=false');
      await client.frame('direct');
      expect(directs(client)).toEqual([[undefined, { i: 1 }]]);
      await client.cut();
      const later = await device(user, { codec });
      await later.ping();
      expect(directs(later)).toEqual([]);
      await later.close();
    });
  },
);
