import { connect as connectTcp, type Socket } from 'node:net';
import { SignJWT, UnsecuredJWT } from 'jose';
import { beforeAll, describe, expect, test } from 'vitest';
import { connect, handshake, TestClient, type Answer } from '../support/client.js';
import { runCli } from '../support/child.js';
import { KeySet } from '../support/key-set.js';
import { startNode, type NodeProcess } from '../support/node-process.js';
import { scrape, untilEmpty } from '../support/scrape.js';
import { Signal } from '../support/signal.js';
import { apiKey, authEnv, signToken } from '../support/tokens.js';

let node: NodeProcess;
beforeAll(async () => {
  node = await startNode({
    ...authEnv,
    TOPICAST_ALLOWED_ORIGINS: 'https://shop.example',
    TOPICAST_LINGER_MS: '0',
    TOPICAST_CONNECT_RATE: '100000',
  });
});

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

describe('the token', () => {
  test('is taken from the subprotocol, the header, or the query', async () => {
    const token = await signToken({ sub: 'u1' });
    const offered = await handshake(node.port, '', {
      'sec-websocket-protocol': `topicast.v1.msgpack, bearer.${token}`,
    });
    expect(offered.status).toBe(101);
    expect(offered.headers['sec-websocket-protocol']).toBe('topicast.v1.msgpack');
    const header = await handshake(node.port, '', bearer(token));
    expect(header.status).toBe(101);
    expect(header.headers['sec-websocket-protocol']).toBeUndefined();
    expect((await handshake(node.port, `token=${token}`, {})).status).toBe(101);
  });

  test('of any fault is refused with the very same answer', async () => {
    const valid = await signToken({ sub: 'u1' });
    const faulty = {
      forged: await signToken({ sub: 'u1' }, 'another-secret-that-the-node-does-not-know'),
      expired: await signToken({ sub: 'u1', ttlSec: -10 }),
      unsigned: new UnsecuredJWT({ sub: 'u1' }).setExpirationTime('1h').encode(),
      endless: await endless(),
      tampered: `${valid.slice(0, -3)}${valid.endsWith('AAA') ? 'BBB' : 'AAA'}`,
      malformed: 'a.b.c',
      long: `${valid}${'x'.repeat(8192)}`,
      'no user': await signToken({ sub: 'no user id' }),
      none: undefined,
    };
    const answers = new Map<string, Answer>();
    for (const [name, token] of Object.entries(faulty)) {
      answers.set(name, await handshake(node.port, '', token === undefined ? {} : bearer(token)));
    }
    const first = answers.get('none')!;
    expect(first.status).toBe(401);
    expect(JSON.parse(first.body)).toMatchObject({ error: { code: 'unauthorized' } });
    for (const [name, { status, body, headers }] of answers) {
      expect({ name, status, body, headers: { ...headers, date: '' } }).toEqual({
        name,
        status: 401,
        body: first.body,
        headers: { ...first.headers, date: '' },
      });
    }
  });

  test('alone among the offered subprotocols is a malformed upgrade', async () => {
    const token = await signToken({ sub: 'u1' });
    const answer = await handshake(node.port, '', { 'sec-websocket-protocol': `bearer.${token}` });
    expect(answer.status).toBe(400);
  });

  test('counts in the probe in the places where an upgrade has it', async () => {
    const probe = async (headers: Record<string, string>) =>
      (await fetch(`${node.url}/v1/connect`, { headers })).status;
    expect(await probe(bearer(apiKey))).toBe(200);
    // No upgrade looks there.
    expect(await probe({ 'x-api-key': apiKey })).toBe(401);
    expect((await handshake(node.port, '', { 'x-api-key': apiKey })).status).toBe(401);
  });

  test('does not help where the origin is not allowed', async () => {
    const token = await signToken({ sub: 'u1' });
    const from = (origin: string) => handshake(node.port, '', { ...bearer(token), origin });
    expect((await from('https://elsewhere.example')).status).toBe(403);
    expect((await from('https://shop.example')).status).toBe(101);
  });
});

test.each([
  ['an older version', { 'sec-websocket-version': '8' }],
  ['no version', { 'sec-websocket-version': '' }],
  ['another protocol', { upgrade: 'h2c' }],
  ['no protocol, as from a proxy that knows no upgrades', { upgrade: '', connection: 'close' }],
  ['a short key', { 'sec-websocket-key': 'abc' }],
  ['no key', { 'sec-websocket-key': '' }],
])('an upgrade with %s is malformed', async (_, headers) => {
  const answer = await handshake(node.port, '', { ...bearer(apiKey), ...headers });
  expect(answer.status).toBe(400);
  expect(answer.headers['sec-websocket-version']).toBe('13');
  expect(JSON.parse(answer.body)).toMatchObject({ error: { code: 'invalid_frame' } });
});

describe('the topics of a handshake', () => {
  test('are answered one by one after welcome, and a faulty one does not cost the connection', async () => {
    const token = await signToken({
      sub: 'u1',
      topics: ['coupon.mine', 'news.mine'],
      can: { sub: ['item.*.price', 'news.>'], pub: ['>'] },
    });
    const client = await connect({
      port: node.port,
      token,
      topics: ['news.a', 'item.1.price', 'item.>', 'item.*.price', 'item.1', 'a..b', 'item.1.price@x', ''],
    });
    await client.until('all topics are answered', () => outcomes(client).size === 9);
    expect(client.frames[0]?.type).toBe('welcome');
    const known = {
      epoch: expect.any(String) as string,
      offset: expect.any(Number) as number,
      recovered: true,
    };
    expect(Object.fromEntries(outcomes(client))).toEqual({
      'coupon.mine': { topic: 'coupon.mine', ...known },
      'news.mine': { topic: 'news.mine' },
      'news.a': { topic: 'news.a' },
      'item.1.price': { topic: 'item.1.price', ...known },
      // A pattern that meets what is granted, but is not contained in it.
      'item.>': { topic: 'item.>', error: 'forbidden' },
      'item.*.price': { topic: 'item.*.price', ...known },
      'item.1': { topic: 'item.1', error: 'forbidden' },
      'a..b': { topic: 'a..b', error: 'invalid_topic' },
      'item.1.price@x': { topic: 'item.1.price@x', error: 'invalid_topic' },
    });
    await client.ping();
    await client.close();
    await untilEmpty(node.port);
  });

  test('never come before welcome', async () => {
    const clients = Array.from(
      { length: 50 },
      () => new TestClient({ port: node.port, token: apiKey, topics: ['item.w', 'news.w'] }),
    );
    await Promise.all(clients.map((c) => c.signal.until('a frame', () => c.frames.length > 0)));
    expect(clients.map((c) => c.frames[0]?.type)).toEqual(clients.map(() => 'welcome'));
    await Promise.all(clients.map((c) => c.cut()));
    await untilEmpty(node.port);
  });
});

describe('admission', () => {
  test('turns a burst away with a time to come back that differs, and is not used up by bad tokens', async () => {
    const slow = await startNode({ ...authEnv, TOPICAST_CONNECT_RATE: '5' });
    const bad = await Promise.all(
      Array.from({ length: 40 }, () => handshake(slow.port, '', bearer('a.b.c'))),
    );
    expect(bad.map((answer) => answer.status)).toEqual(bad.map(() => 401));
    const answers = await Promise.all(
      Array.from({ length: 60 }, () => handshake(slow.port, '', bearer(apiKey))),
    );
    const accepted = answers.filter((answer) => answer.status === 101);
    const refused = answers.filter((answer) => answer.status === 503);
    expect(accepted.length + refused.length).toBe(60);
    // One second's worth at once; a slow machine may take long enough for a few more.
    expect(accepted.length).toBeGreaterThanOrEqual(5);
    expect(refused.length).toBeGreaterThan(20);
    const waits = refused.map((answer) => Number(answer.headers['retry-after']));
    for (const wait of waits) expect(Number.isInteger(wait) && wait >= 1 && wait <= 60).toBe(true);
    expect(new Set(waits).size).toBeGreaterThan(3);
  });

  test('does not take those who ask why for more who wait', async () => {
    const slow = await startNode({ ...authEnv, TOPICAST_CONNECT_RATE: '1' });
    const url = `http://127.0.0.1:${slow.port}/v1/connect`;
    const asked = await Promise.all(
      Array.from({ length: 200 }, async () => (await fetch(url, { headers: bearer(apiKey) })).status),
    );
    expect(new Set(asked).has(401)).toBe(false);
    const waits: number[] = [];
    while (waits.length < 5) {
      const answer = await handshake(slow.port, '', bearer(apiKey));
      if (answer.status === 503) waits.push(Number(answer.headers['retry-after']));
    }
    // The fifth is due in five seconds.
    for (const wait of waits) expect(wait).toBeLessThanOrEqual(7);
  });
});

describe('the client that leaves', () => {
  test('while its token is checked harms nobody', async () => {
    const keys = await KeySet.start();
    const guarded = await startNode({
      TOPICAST_JWKS_URL: keys.url,
      TOPICAST_JWT_AUDIENCE: 'tests',
      TOPICAST_JWT_ISSUER: 'tests',
      TOPICAST_LINGER_MS: '0',
      TOPICAST_API_KEY: apiKey,
    });
    const token = await keys.sign('u1');
    const gone: Socket[] = [];
    for (let i = 0; i < 5; i++) gone.push(await sendUpgrade(guarded.port, token));
    const stays = new TestClient({ port: guarded.port, token, topics: ['item.1'] });
    await keys.asked();
    for (const [i, socket] of gone.entries()) {
      // Both ways to leave: in order, and as a crash does.
      if (i % 2 === 0) socket.destroy();
      else socket.resetAndDestroy();
    }
    // What follows on the same loop is read after their end was.
    await scrape(guarded.port, 'connections');
    keys.answer();
    await stays.frame('subscribed');
    expect(await scrape(guarded.port, 'connections')).toEqual([1]);
    await stays.close();
    await untilEmpty(guarded.port);
    expect(guarded.stderr).not.toContain('unexpected fault');
    keys.close();
  });

  test('in the middle of its header block harms nobody', async () => {
    for (let i = 0; i < 20; i++) {
      const socket = await dial(node.port);
      socket.write('GET /v1/connect HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: webso');
      socket.resetAndDestroy();
    }
    const client = await connect({ port: node.port, token: apiKey });
    await client.close();
  });
});

describe('the header block', () => {
  const limit = 16 * 1024;

  test('is read up to its bound, in pieces', async () => {
    const line = await RawLine.open(node.port);
    const block = headerBlock(limit - 64);
    line.write(block.slice(0, -2));
    line.write(block.slice(-2));
    expect(await line.answer()).toMatch(/^HTTP\/1\.1 101 /);
  });

  // µWS itself lets a block through that comes whole in one read.
  test.each([limit + 64, 2 * limit])('of %i bytes at once is refused', async (bytes) => {
    const line = await RawLine.open(node.port);
    line.write(headerBlock(bytes));
    expect(await line.answer()).toMatch(/^HTTP\/1\.1 431 /);
  });

  test('is the same bound for the other routes', async () => {
    const ask = (bytes: number) => fetch(`${node.url}/healthz`, { headers: { filler: 'x'.repeat(bytes) } });
    expect((await ask(limit - 400)).status).toBe(200);
    expect((await ask(limit)).status).toBe(431);
  });

  test.each([limit + 64, 4 * limit])('of %i bytes that is not at its end is refused', async (bytes) => {
    const line = await RawLine.open(node.port);
    line.write(headerBlock(bytes).slice(0, -2));
    expect(await line.answer()).toMatch(/^(HTTP\/1\.1 431 |$)/);
    const client = await connect({ port: node.port, token: apiKey });
    await client.close();
  });
});

// µWS closed one in eight of them when the upgrade was corked.
test('the first connection of a fresh node is not cut', async () => {
  for (let round = 0; round < 6; round++) {
    const fresh = await Promise.all(Array.from({ length: 4 }, () => startNode(authEnv)));
    for (const { port } of fresh) {
      const client = await connect({ port, token: await signToken({ sub: 'u1' }) });
      await client.close();
    }
    await Promise.all(fresh.map((each) => each.kill()));
  }
});

test('a port that is taken ends the second node with exit code 1 and a clear message', async () => {
  const second = runCli(['serve'], { ...authEnv, TOPICAST_PORT: String(node.port) });
  expect(await second.exited).toBe(1);
  expect(second.stderr).toContain(`cannot listen on 127.0.0.1:${node.port}`);
  expect(second.stderr).not.toMatch(/^\s+at /m);
  expect(second.stdout).toBe('');
});

describe('GET /v1/connect without an upgrade', () => {
  const probe = (query: string, headers: Record<string, string>) =>
    fetch(`${node.url}/v1/connect${query}`, { headers });

  test('answers as the upgrade would, and lets a browser read it', async () => {
    const token = await signToken({ sub: 'u1' });
    const origin = 'https://shop.example';
    const fine = await probe('', { ...bearer(token), origin });
    expect(fine.status).toBe(200);
    expect(fine.headers.get('access-control-allow-origin')).toBe(origin);
    const refused = await probe('', { ...bearer('a.b.c'), origin });
    expect(refused.status).toBe(401);
    expect(refused.headers.get('access-control-allow-origin')).toBe(origin);
    expect(await refused.text()).toBe((await handshake(node.port, '', bearer('a.b.c'))).body);
    expect((await probe('', { ...bearer(token), origin: 'https://elsewhere.example' })).status).toBe(403);
    expect((await probe(`?token=${token}`, {})).status).toBe(200);
  });
});

async function endless(): Promise<string> {
  const { secret } = await import('../support/tokens.js');
  return new SignJWT({ sub: 'u1' })
    .setProtectedHeader({ alg: 'HS256' })
    .sign(new TextEncoder().encode(secret));
}

function outcomes(client: TestClient): Map<string, unknown> {
  const told = client.ofType('subscribed').flatMap((frame) => frame.topics);
  return new Map(told.map((topic) => [topic.topic, topic]));
}

function dial(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connectTcp(port, '127.0.0.1', () => resolve(socket));
    socket.once('error', reject);
  });
}

const upgradeHead = [
  'GET /v1/connect HTTP/1.1',
  'Host: 127.0.0.1',
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
];

async function sendUpgrade(port: number, token: string): Promise<Socket> {
  const socket = await dial(port);
  socket.on('error', () => undefined);
  await new Promise<void>((resolve) => {
    socket.write([...upgradeHead, `Authorization: Bearer ${token}`, '', ''].join('\r\n'), () => resolve());
  });
  return socket;
}

/** An upgrade whose header block has this many bytes. */
function headerBlock(bytes: number): string {
  const head = [...upgradeHead, `Authorization: Bearer ${apiKey}`, 'X-Filler: '].join('\r\n');
  return `${head}${'f'.repeat(bytes - head.length - 4)}\r\n\r\n`;
}

/** A bare connection. */
class RawLine {
  readonly #socket: Socket;
  readonly #signal = new Signal();
  #text = '';
  #closed = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding('latin1').on('data', (more: string) => {
      this.#text += more;
      this.#signal.notify();
    });
    // A close follows.
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#closed = true;
      this.#signal.notify();
    });
  }

  static async open(port: number): Promise<RawLine> {
    return new RawLine(await dial(port));
  }

  write(text: string): void {
    this.#socket.write(text);
  }

  /** What was answered, '' when the line was cut; ends the connection. */
  async answer(): Promise<string> {
    await this.#signal.until('an answer or the end', () => this.#closed || this.#text.includes('\r\n\r\n'));
    this.#socket.destroy();
    return this.#text;
  }
}
