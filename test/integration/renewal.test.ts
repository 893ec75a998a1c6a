import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exportSPKI } from 'jose';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { codecs, connect } from '../support/client.js';
import { KeySet } from '../support/key-set.js';
import { startNode, type NodeProcess } from '../support/node-process.js';
import { apiKey } from '../support/tokens.js';

let keys: KeySet;
let node: NodeProcess;
beforeAll(async () => {
  keys = await KeySet.start();
  node = await startNode({
    TOPICAST_JWKS_URL: keys.url,
    TOPICAST_JWT_AUDIENCE: 'tests',
    TOPICAST_JWT_ISSUER: 'tests',
    TOPICAST_API_KEY: apiKey,
  });
});
afterAll(() => keys.close());

test('what follows a fresh token is judged by its rights, however long its check takes, and a pong tells that it is over', async () => {
  const clients = await Promise.all(
    codecs.map((codec) => connect({ port: node.port, codec, token: apiKey })),
  );
  // The key may everything, and the token of the same user not.
  const token = await keys.sign('api-key', { sub: ['price.new'] });
  for (const client of clients) {
    client.send({ type: 'subscribe', req: 1, topics: [{ topic: 'price.old' }] });
    client.send({ type: 'auth', req: 2, token });
    client.send({ type: 'subscribe', req: 3, topics: [{ topic: 'price.old' }, { topic: 'price.new' }] });
    client.send({ type: 'auth', req: 4, token: 'a.b.c' });
    client.send({ type: 'ping' });
    await client.frame('subscribed', (frame) => frame.req === 1);
  }
  await keys.asked();
  keys.answer();
  for (const client of clients) {
    await client.frame('pong');
    const others = client.frames.slice(1).filter(({ type }) => type !== 'subscribed');
    expect(others.map(({ type }) => type)).toEqual(['unsubscribed', 'error', 'pong']);
    expect(client.ofType('unsubscribed')).toEqual([
      { type: 'unsubscribed', topics: ['price.old'], reason: 'forbidden' },
    ]);
    const told = () => client.ofType('subscribed').flatMap(({ req, topics }) => (req === 3 ? topics : []));
    await client.until('both topics are answered', () => told().length === 2);
    expect(told()).toEqual([{ topic: 'price.old', error: 'forbidden' }, { topic: 'price.new' }]);
    expect(client.ofType('error')).toMatchObject([{ req: 4, code: 'forbidden' }]);
    await client.close();
  }
});

test('a handshake with a token that a public key checks is accepted in one go', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'topicast-key-'));
  const file = join(folder, 'key.pem');
  writeFileSync(file, await exportSPKI(keys.keys.publicKey));
  const guarded = await startNode({ TOPICAST_JWT_PUBLIC_KEY_FILE: file });
  for (let i = 0; i < 5; i++) {
    const client = await connect({ port: guarded.port, token: await keys.sign('u1'), topics: ['item.1'] });
    await client.frame('subscribed');
    await client.close();
  }
  await guarded.stop();
  // µWS complains here when an upgrade comes too late for its writes to be joined.
  expect(guarded.stderr).not.toContain('corked');
  rmSync(folder, { recursive: true });
});
