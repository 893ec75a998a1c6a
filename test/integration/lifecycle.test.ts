import { describe, expect, test } from 'vitest';
import { closeCodes } from '../../protocol/mod.js';
import { codecs, connect, handshake, TestClient } from '../support/client.js';
import { startNode } from '../support/node-process.js';
import { untilEmpty } from '../support/scrape.js';
import { numbered, Publisher, unhurried } from '../support/stream.js';
import { apiKey, authEnv, signToken } from '../support/tokens.js';

const [json] = codecs;

test('a client that answers nothing is cut as idle; one whose WebSocket answers pings stays', async () => {
  const node = await startNode({ TOPICAST_PING_SEC: '1', TOPICAST_IDLE_SEC: '8' });
  const silent = await connect({ port: node.port, autoPong: false });
  const suspended = await connect({ port: node.port });
  let pings = 0;
  suspended.socket.on('ping', () => pings++);
  expect((await silent.ended()).code).toBe(closeCodes.idle);
  expect(silent.ofType('bye')).toMatchObject([{ code: closeCodes.idle }]);
  expect(pings).toBeGreaterThan(2);
  await suspended.ping();
  await suspended.close();
  await node.stop();
});

describe('the token', () => {
  const soon = { ...authEnv, ...unhurried, TOPICAST_EXPIRING_SEC: '3600' };

  test('that ends is announced, a fresh one keeps the connection, without one it is closed', async () => {
    const node = await startNode(soon);
    const short = await signToken({ sub: 'u1', can: { sub: ['>'] }, ttlSec: 4 });
    const kept = await connect({ port: node.port, token: short });
    const left = await connect({ port: node.port, token: short });
    expect((await kept.frame('welcome')).expiresInSec).toBeLessThanOrEqual(4);
    expect((await kept.frame('expiring')).inSec).toBeLessThanOrEqual(4);

    const other = await signToken({ sub: 'u2', can: { sub: ['>'] } });
    for (const token of [other, 'a.b.c', await signToken({ sub: 'u1', ttlSec: -5 })]) {
      expect((await kept.ask('error', { type: 'auth', token })).code).toBe('forbidden');
    }
    const from = kept.frames.length;
    kept.send({ type: 'auth', token: await signToken({ sub: 'u1', can: { sub: ['>'] }, ttlSec: 600 }) });
    // The end of the new one is announced, too: it is taken.
    await kept.frame('expiring', (frame) => frame.inSec > 500, from);
    expect((await left.ended()).code).toBe(closeCodes.tokenExpired);
    expect(left.ofType('bye')).toMatchObject([{ code: closeCodes.tokenExpired }]);
    await kept.ping();
    expect(kept.ofType('bye')).toEqual([]);
    await kept.close();
    await node.stop();
  });

  test('with fewer grants ends the subscriptions that it does not grant', async () => {
    const node = await startNode(soon);
    const token = await signToken({ sub: 'u1', can: { sub: ['item.>', 'news.>'] } });
    const client = await connect({ port: node.port, token, topics: ['item.a', 'item.*', 'news.a'] });
    await client.until(
      'all are told',
      () => client.ofType('subscribed').flatMap((f) => f.topics).length === 3,
    );
    client.send({ type: 'auth', token: await signToken({ sub: 'u1', can: { sub: ['item.a', 'news.b'] } }) });
    const ended = await client.frame('unsubscribed');
    expect(ended.req).toBeUndefined();
    expect(ended.reason).toBe('forbidden');
    expect([...ended.topics].sort()).toEqual(['item.*', 'news.a']);
    const publisher = await Publisher.connect(node.port, json, apiKey);
    await publisher.burst(['news.a', 'item.b', 'item.a'], 6);
    await client.until('what is still granted', () => client.messages.length >= 2);
    await client.ping();
    expect(client.messages.map((message) => message.topic)).toEqual(['item.a', 'item.a']);
    const again = await client.ask('subscribed', { type: 'subscribe', topics: [{ topic: 'news.a' }] });
    expect(again.topics).toEqual([{ topic: 'news.a', error: 'forbidden' }]);
    await client.close();
    await publisher.client.close();
    await node.stop();
  });

  test('of a user who is kicked is blocked, and the connections are closed', async () => {
    const node = await startNode(authEnv);
    const token = await signToken({ sub: 'u1' });
    const clients = [await connect({ port: node.port, token }), await connect({ port: node.port, token })];
    const bystander = await connect({ port: node.port, token: await signToken({ sub: 'u2' }) });
    const response = await fetch(`${node.url}/v1/users/u1/sessions`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${apiKey}` },
    });
    expect(await response.json()).toEqual({ closed: 2 });
    for (const client of clients) expect((await client.ended()).code).toBe(closeCodes.kicked);
    expect((await handshake(node.port, '', { authorization: `Bearer ${token}` })).status).toBe(401);
    await bystander.ping();
    await bystander.close();
    await node.stop();
  });
});

test('connections of one user above the limit are closed with 4503, others are not', async () => {
  const node = await startNode({
    ...authEnv,
    TOPICAST_CONNECTIONS_PER_USER_MAX: '2',
    TOPICAST_LINGER_MS: '0',
  });
  const token = await signToken({ sub: 'u1', topics: ['item.1'] });
  const first = await connect({ port: node.port, token });
  const second = await connect({ port: node.port, token });
  const third = new TestClient({ port: node.port, token });
  expect((await third.ended()).code).toBe(closeCodes.tooManyConnections);
  expect(third.frames.map((frame) => frame.type)).toEqual(['bye']);
  const other = await connect({ port: node.port, token: await signToken({ sub: 'u2' }) });
  await first.close();
  const fourth = await connect({ port: node.port, token });
  await Promise.all([second, other, fourth].map((client) => client.close()));
  await untilEmpty(node.port);
  await node.stop();
});

describe('a node that is told to stop', () => {
  test('says when to come back, loses nothing that it accepted, and ends with 0', async () => {
    // What is accepted waits for a moment before it leaves, and the signal may come within it.
    for (let round = 0; round < 5; round++) {
      const node = await startNode({ ...unhurried, TOPICAST_DRAIN_SEC: '1' });
      const readers = await Promise.all(
        codecs.flatMap((codec) =>
          Array.from({ length: 5 }, () =>
            connect({ port: node.port, codec, topics: ['item.a', 'item.b.*'] }),
          ),
        ),
      );
      await Promise.all(
        readers.map((r) =>
          r.until('all are told', () => r.ofType('subscribed').flatMap((f) => f.topics).length === 2),
        ),
      );
      const publisher = await Publisher.connect(node.port, json);
      await publisher.burst(['item.a', 'item.b.c'], 301);
      const exited = node.stop();
      for (const reader of readers) {
        expect((await reader.ended()).code).toBe(closeCodes.draining);
        const bye = reader.ofType('bye');
        expect(bye).toMatchObject([{ code: closeCodes.draining }]);
        expect(bye[0]?.retryMs).toBeGreaterThanOrEqual(0);
        expect(bye[0]?.retryMs).toBeLessThanOrEqual(1000);
        for (const topic of ['item.a', 'item.b.c']) {
          const got = reader.messages.filter((message) => message.topic === topic);
          expect(got.map(numbered)).toEqual(publisher.after(topic));
        }
      }
      expect(new Set(readers.map((reader) => reader.ofType('bye')[0]?.retryMs)).size).toBeGreaterThan(3);
      expect(await exited).toBe(0);
    }
  });

  test('refuses those who come meanwhile, and does not wait for a client that does not read', async () => {
    const node = await startNode({
      ...unhurried,
      TOPICAST_DRAIN_SEC: '1',
      TOPICAST_LIMIT_BUFFER_BYTES: '262144',
    });
    const deaf = await connect({ port: node.port, topics: ['item.a'] });
    await deaf.frame('subscribed');
    deaf.socket.pause();
    const publisher = await Publisher.connect(node.port, json);
    await publisher.burst(['item.a'], 600, 'f'.repeat(40_000));
    expect(await node.stop()).toBe(0);
    deaf.socket.resume();
    await deaf.ended();
    expect((await publisher.client.ended()).code).toBe(closeCodes.draining);
  });
});
