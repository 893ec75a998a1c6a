import { connect as connectSocket, createServer } from 'node:net';
import { beforeAll, describe, expect, it } from 'vitest';
import { connect } from '../support/client.js';
import { startNode, type NodeProcess } from '../support/node-process.js';
import { apiKey, authEnv, signToken } from '../support/tokens.js';

const namespaces = JSON.stringify({ room: { presence: true }, note: { delivery: 'durable' } });

let node: NodeProcess;
let open: NodeProcess;
beforeAll(async () => {
  const env = { TOPICAST_NAMESPACES: namespaces, TOPICAST_LOG_LEVEL: 'error' };
  node = await startNode({ ...env, ...authEnv });
  open = await startNode(env);
});

interface Options {
  readonly method?: string;
  readonly token?: string;
  readonly body?: string | Uint8Array<ArrayBuffer>;
  readonly headers?: Record<string, string>;
  readonly to?: NodeProcess;
}

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** '' when it is no error. */
  readonly code: string;
}

async function call(path: string, options: Options = {}): Promise<Answer> {
  const { body, headers, method = body === undefined ? 'GET' : 'POST', to = node, token = apiKey } = options;
  const response = await fetch(`${to.url}${path}`, {
    method,
    headers: {
      ...(token !== '' && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body }),
  });
  const text = await response.text();
  const code = /^\{"error":\{"code":"(\w+)","message":".+"\}\}$/.exec(text)?.[1] ?? '';
  return { status: response.status, headers: response.headers, text, code };
}

/** Writes bytes to the port and answers what came until the other side closed, or `enough` matched. */
function raw(port: number, parts: readonly (string | Uint8Array)[], enough: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connectSocket(port, '127.0.0.1');
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk;
      if (enough.test(text)) socket.destroy();
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(text));
    for (const part of parts) socket.write(part);
  });
}

const parsed = ({ text }: Answer): unknown => JSON.parse(text);

describe('publishing', () => {
  it('stores a durable message, answers its place, and keeps every digit', async () => {
    const body = '{"n": 9007199254740993, "f": 1.0}';
    const answer = await call('/v1/topics/item.digits/messages', { body });
    expect(answer.status).toBe(200);
    expect(Object.keys(parsed(answer) as object)).toEqual(['topic', 'epoch', 'offset', 'duplicate']);
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    const history = await call('/v1/topics/item.digits/messages');
    expect(history.text).toContain(`"data":${body}}`);
  });

  it('answers a live message with 202', async () => {
    const answer = await call('/v1/topics/room.1/messages', { body: '1' });
    expect([answer.status, answer.text]).toEqual([202, '{"topic":"room.1"}']);
  });

  it('stores a message with one key once', async () => {
    const send = () =>
      call('/v1/topics/item.key/messages', { body: '1', headers: { 'Idempotency-Key': 'k1' } });
    const [first, second] = [parsed(await send()), parsed(await send())] as { offset: number }[];
    expect(first).toMatchObject({ duplicate: false });
    expect(second).toEqual({ ...first, duplicate: true });
    const long = await call('/v1/topics/item.key/messages', {
      body: '1',
      headers: { 'Idempotency-Key': 'k'.repeat(129) },
    });
    expect([long.status, long.code]).toEqual([400, 'invalid_frame']);
  });

  it('says where the JSON breaks', async () => {
    const answer = await call('/v1/topics/item.1/messages', { body: '{"a": 1,\n "b": x}' });
    expect([answer.status, answer.code]).toEqual([400, 'invalid_frame']);
    expect(answer.text).toContain('line 2, column 7');
    const empty = await call('/v1/topics/item.1/messages', { body: '' });
    expect(empty.status).toBe(400);
  });

  it('refuses what is not UTF-8, not a topic, or not granted', async () => {
    const path = '/v1/topics/item.1/messages';
    expect((await call(path, { body: Uint8Array.of(0x22, 0xff, 0x22) })).status).toBe(400);
    for (const topic of ['item..1', 'item.*', 'a%20b', '%zz', '%ff']) {
      const answer = await call(`/v1/topics/${topic}/messages`, { body: '1' });
      expect([topic, answer.status, answer.code]).toEqual([topic, 400, 'invalid_topic']);
    }
    const token = await signToken({ sub: 'u', can: { pub: ['item.2'], admin: true } });
    expect((await call(path, { body: '1', token })).code).toBe('forbidden');
    expect((await call('/v1/topics/item.2/messages', { body: '1', token })).status).toBe(200);
  });

  it('takes 256 KiB and refuses 300 KB, told or not told beforehand', async () => {
    const path = '/v1/topics/item.big/messages';
    const text = (bytes: number) => JSON.stringify('x'.repeat(bytes - 2));
    expect((await call(path, { body: text(256 * 1024) })).status).toBe(200);
    expect((await call(path, { body: text(256 * 1024 + 1) })).code).toBe('payload_too_large');
    const large = await call(path, { body: text(300_000) });
    expect([large.status, large.code]).toEqual([413, 'payload_too_large']);
    const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${apiKey}\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const chunk = `10000\r\n${'1'.repeat(0x10000)}\r\n`;
    const answer = await raw(node.port, [head, ...Array<string>(5).fill(chunk)], /payload_too_large/);
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    const history = parsed(await call(`${path}?limit=1000`)) as { messages: unknown[] };
    expect(history.messages).toHaveLength(1);
  });

  it('does nothing for a body that is cut off half way', async () => {
    const path = '/v1/topics/item.cut/messages';
    await new Promise<void>((resolve, reject) => {
      const socket = connectSocket(node.port, '127.0.0.1');
      const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${apiKey}\r\nContent-Length: 9\r\n\r\n`;
      socket.on('error', reject);
      socket.on('close', () => resolve());
      socket.write(`${head}12345`, () => socket.destroy());
    });
    // A whole one afterwards is the only one, and the node lives.
    expect((await call(path, { body: '2' })).status).toBe(200);
    expect((await call(path)).text).toMatch(/"messages":\[\{"offset":\d+,"data":2\}\]/);
  });
});

describe('publishing a batch', () => {
  it('answers each message in its place and stores them in order', async () => {
    const items = Array.from({ length: 50 }, (_, i) => `{"topic":"item.batch","data":${i}.0}`);
    const body = `{"messages":[${items.join(',')},{"topic":"x..","data":1},{"topic":"room.1","data":1}]}`;
    const answer = await call('/v1/publish', { body });
    expect(answer.status).toBe(200);
    const { results } = parsed(answer) as { results: { topic: string; error?: string; offset?: number }[] };
    expect(results).toHaveLength(52);
    const offsets = results.slice(0, 50).map(({ offset }) => offset ?? NaN);
    expect(offsets.every((offset, i) => i === 0 || offset > (offsets[i - 1] ?? 0))).toBe(true);
    expect(results[50]).toMatchObject({ topic: 'x..', error: 'invalid_topic' });
    expect(results[51]).toEqual({ topic: 'room.1' });
    const history = (await call('/v1/topics/item.batch/messages')).text;
    expect([...history.matchAll(/"data":(\d+)\.0/g)].map(([, n]) => Number(n))).toEqual(
      Array.from({ length: 50 }, (_, i) => i),
    );
  });

  it('takes 1,000 messages and not one more', async () => {
    const batch = (length: number) =>
      JSON.stringify({ messages: Array.from({ length }, () => ({ topic: 'room.1', data: 0 })) });
    expect((await call('/v1/publish', { body: batch(1000) })).status).toBe(200);
    const more = await call('/v1/publish', { body: batch(1001) });
    expect([more.status, more.code]).toEqual([400, 'invalid_frame']);
  });

  it('tells of a missing grant in that message', async () => {
    const token = await signToken({ sub: 'u', can: { pub: ['item.1'] } });
    const messages = ['item.1', 'item.2'].map((topic) => ({ topic, data: 1 }));
    const answer = await call('/v1/publish', { body: JSON.stringify({ messages }), token });
    expect(parsed(answer)).toMatchObject({ results: [{ duplicate: false }, { error: 'forbidden' }] });
  });
});

describe('reading topics', () => {
  it('pages through a history, of a topic and of a pattern', async () => {
    for (const [topic, data] of [
      ['note.a', 1],
      ['note.b', 2],
      ['note.a', 3],
    ] as const) {
      await call(`/v1/topics/${topic}/messages`, { body: String(data) });
    }
    interface Page {
      messages: { offset: number; data: number; topic?: string }[];
      more: boolean;
    }
    const first = parsed(await call('/v1/topics/note.a/messages?limit=1')) as Page;
    expect(first).toMatchObject({ messages: [{ data: 1 }], more: true });
    const after = first.messages[0]?.offset ?? 0;
    const second = parsed(await call(`/v1/topics/note.a/messages?after=${after}`)) as Page;
    expect(second).toMatchObject({ messages: [{ data: 3 }], more: false });
    const all = parsed(await call('/v1/topics/note.%3E/messages')) as Page;
    expect(all.messages.map(({ topic, data }) => [topic, data])).toEqual([
      ['note.a', 1],
      ['note.b', 2],
      ['note.a', 3],
    ]);
  });

  it('refuses a history that is not kept, not granted or asked for wrongly', async () => {
    const live = await call('/v1/topics/room.1/messages');
    expect([live.status, live.code]).toEqual([400, 'invalid_topic']);
    for (const query of ['limit=0', 'limit=1001', 'after=-1', 'after=x']) {
      expect((await call(`/v1/topics/item.1/messages?${query}`)).status).toBe(400);
    }
    const token = await signToken({ sub: 'u', can: { sub: ['item.1'], admin: true } });
    expect((await call('/v1/topics/item.1/messages', { token })).status).toBe(200);
    expect((await call('/v1/topics/item.>/messages', { token })).status).toBe(403);
    expect((await call('/v1/topics/item.2', { token })).status).toBe(403);
  });

  it('counts subscribers and tells the newest position', async () => {
    const place = parsed(await call('/v1/topics/item.info/messages', { body: '1' })) as { offset: number };
    await call('/v1/topics/item.other/messages', { body: '1' });
    const client = await connect({ port: node.port, token: apiKey, topics: ['item.info', 'room.info'] });
    await client.until('subscribed', () => client.ofType('subscribed').flatMap((f) => f.topics).length === 2);
    expect(parsed(await call('/v1/topics/item.info'))).toMatchObject({
      topic: 'item.info',
      subscribers: 1,
      offset: place.offset,
      epoch: expect.any(String) as string,
    });
    expect(parsed(await call('/v1/topics/room.info'))).toEqual({ topic: 'room.info', subscribers: 1 });
    await client.close();
  });

  it('lists who subscribes where presence is on', async () => {
    const token = await signToken({ sub: 'ann', can: { sub: ['room.>'] } });
    const clients = [
      await connect({ port: node.port, token, topics: ['room.who'] }),
      await connect({ port: node.port, token, topics: ['room.*'] }),
    ];
    for (const client of clients) await client.frame('subscribed');
    expect(parsed(await call('/v1/topics/room.who/subscribers'))).toEqual({ users: ['ann'] });
    expect((await call('/v1/topics/room.who/subscribers', { token })).code).toBe('forbidden');
    expect((await call('/v1/topics/item.1/subscribers')).code).toBe('forbidden');
    for (const client of clients) await client.close();
  });
});

describe('users', () => {
  it('pushes to a session, queues for who is away, and drops what may not wait', async () => {
    const path = '/v1/users/bob/messages';
    const queued = await call(path, { body: '{"n": 1e400}' });
    expect(parsed(queued)).toEqual({ id: expect.any(Number) as number, status: 'queued', sessions: 0 });
    expect(parsed(await call(`${path}?queue=false`, { body: '1' }))).toEqual({
      status: 'dropped',
      sessions: 0,
    });
    const client = await connect({ port: node.port, token: await signToken({ sub: 'bob' }) });
    await client.frame('direct', ({ data }) => data.format === 'json' && data.text === '{"n": 1e400}');
    expect(parsed(await call(path, { body: '2' }))).toMatchObject({ status: 'sent', sessions: 1 });
    expect(parsed(await call(`${path}?queue=false`, { body: '3' }))).toEqual({ status: 'sent', sessions: 1 });
    await client.until('all three', () => client.ofType('direct').length === 3);
    expect(client.ofType('direct').map(({ id }) => id !== undefined)).toEqual([true, true, false]);
    await client.close();
  });

  it('refuses pushes that are not granted or not well-formed', async () => {
    const token = await signToken({ sub: 'u', can: { push: ['bob'], admin: true } });
    expect((await call('/v1/users/eve/messages', { body: '1', token })).code).toBe('forbidden');
    for (const user of ['a%20b', '%7Ba%7D', '%zz', 'x'.repeat(129)]) {
      expect((await call(`/v1/users/${user}/messages`, { body: '1' })).status).toBe(400);
    }
    for (const query of ['queue=no', 'ttlSec=0', 'ttlSec=9999999', 'ttlSec=x']) {
      expect((await call(`/v1/users/bob/messages?${query}`, { body: '1' })).status).toBe(400);
    }
    const large = JSON.stringify('x'.repeat(300_000));
    expect((await call('/v1/users/bob/messages', { body: large })).status).toBe(413);
  });

  it('refuses a push to a full queue', async () => {
    const userIds = ['full'];
    for (let sent = 0; sent < 1000; sent += 50) {
      const calls = Array.from({ length: 50 }, () => call('/v1/users/full/messages', { body: '1' }));
      for (const { status } of await Promise.all(calls)) expect(status).toBe(200);
    }
    const refused = await call('/v1/users/full/messages', { body: '1' });
    expect([refused.status, refused.code]).toEqual([409, 'queue_full']);
    expect(parsed(await call('/v1/direct', { body: JSON.stringify({ userIds, data: 1 }) }))).toEqual({
      sent: 0,
      queued: 0,
      failed: [{ userId: 'full', error: 'queue_full' }],
    });
  });

  it('pushes to many and names the ids that failed', async () => {
    const token = await signToken({ sub: 'u', can: { push: ['m1', 'm2', 'm 3'] } });
    const body = JSON.stringify({ userIds: ['m1', 'm2', 'm 3', 'eve', 'm1'], data: { a: 1 } });
    expect(parsed(await call('/v1/direct', { body, token }))).toEqual({
      sent: 0,
      queued: 2,
      failed: [
        { userId: 'm 3', error: 'invalid_frame' },
        { userId: 'eve', error: 'forbidden' },
      ],
    });
    const client = await connect({ port: node.port, token: await signToken({ sub: 'm1' }) });
    await client.frame('direct');
    await client.ping();
    expect(client.ofType('direct')).toHaveLength(1);
    await client.close();
  });

  it('shows who is online', async () => {
    const client = await connect({ port: node.port, token: await signToken({ sub: 'on-1' }), device: 'tv' });
    expect(parsed(await call('/v1/users/on-1'))).toMatchObject({
      online: true,
      sessions: [{ node: node.nodeId, device: 'tv', login: expect.any(Number) as number }],
    });
    expect(parsed(await call('/v1/users/nobody'))).toEqual({ online: false, sessions: [] });
    expect(parsed(await call('/v1/online'))).toMatchObject({ users: 1, connections: 1 });
    expect(parsed(await call('/v1/online/users?prefix=on-'))).toEqual({ users: ['on-1'], cursor: '' });
    expect((await call('/v1/online/users?cursor=%00nonsense')).status).toBe(400);
    expect(parsed(await call('/v1/nodes'))).toMatchObject({ nodes: [{ id: node.nodeId, connections: 1 }] });
    await client.close();
  });

  it('closes the sessions of a user and refuses their tokens', async () => {
    const token = await signToken({ sub: 'bad' });
    const client = await connect({ port: node.port, token });
    const answer = await call('/v1/users/bad/sessions', { method: 'DELETE' });
    expect(parsed(answer)).toEqual({ closed: 1 });
    expect((await client.ended()).code).toBe(4502);
    expect((await call('/v1/connect', { token })).status).toBe(401);
    expect((await call('/v1/connect', { token: await signToken({ sub: 'bad', ttlSec: 601 }) })).status).toBe(
      200,
    );
  });

  it('subscribes and unsubscribes living sessions', async () => {
    const client = await connect({ port: node.port, token: await signToken({ sub: 'sam' }) });
    const path = '/v1/users/sam/topics';
    const body = JSON.stringify({ topics: ['item.sam', 'room.sam', 'x..'] });
    expect(parsed(await call(path, { body }))).toEqual({
      topics: [{ topic: 'item.sam' }, { topic: 'room.sam' }, { topic: 'x..', error: 'invalid_topic' }],
      sessions: 1,
    });
    await client.until('subscribed', () => client.ofType('subscribed').flatMap((f) => f.topics).length === 2);
    await call('/v1/topics/item.sam/messages', { body: '1' });
    await client.frame('msg');
    // Once more changes nothing: the message is not sent again.
    await call(path, { body });
    await call(path, { body: '{"topics":["item.sam"]}', method: 'DELETE' });
    const frame = await client.frame('unsubscribed');
    expect(frame.topics).toEqual(['item.sam']);
    await call('/v1/topics/item.sam/messages', { body: '2' });
    await client.ping();
    expect(client.messages).toHaveLength(1);
    expect(
      (await client.ask('subscribed', { type: 'subscribe', topics: [{ topic: 'item.sam' }] })).topics,
    ).toEqual([{ topic: 'item.sam', error: 'forbidden' }]);
    await client.close();
  });
});

describe('who may call', () => {
  const admin = [
    ['GET', '/v1/users/u'],
    ['DELETE', '/v1/users/u/sessions'],
    ['POST', '/v1/users/u/topics'],
    ['GET', '/v1/online'],
    ['GET', '/v1/online/users'],
    ['GET', '/v1/nodes'],
    ['GET', '/v1/topics/room.1/subscribers'],
    ['GET', '/metrics'],
  ] as const;

  it.each(admin)('%s %s wants an admin grant', async (method, path) => {
    const body = method === 'POST' ? { body: '{"topics":["a"]}' } : {};
    const can = { sub: ['>'], pub: ['>'], push: ['*'] };
    const plain = await call(path, { method, ...body, token: await signToken({ sub: 'u', can }) });
    expect([plain.status, plain.code]).toEqual([403, 'forbidden']);
    const operator = await signToken({ sub: 'op', can: { admin: true } });
    expect((await call(path, { method, ...body, token: operator })).status).toBe(200);
  });

  it('tells nothing about what is wrong with a token', async () => {
    const faults = [
      '',
      'nonsense',
      await signToken({ sub: 'u', ttlSec: -1 }),
      await signToken({ sub: 'u' }, 'x'.repeat(40)),
    ];
    const answers = [];
    for (const token of faults) answers.push(await call('/v1/topics/item.1', { token }));
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(answers[0]).toMatchObject({ status: 401, code: 'unauthorized' });
    expect(answers[0]?.headers.get('www-authenticate')).toBe('Bearer');
  });

  it('takes the key from its own header as well', async () => {
    expect((await call('/v1/nodes', { token: '', headers: { 'X-Api-Key': apiKey } })).status).toBe(200);
    expect((await call('/v1/nodes', { token: '', headers: { 'X-Api-Key': 'other' } })).status).toBe(401);
  });

  it('answers the probe as the upgrade would be', async () => {
    expect((await call('/v1/connect')).text).toBe('{"ok":true}');
    const refused = await call('/v1/connect', {
      token: 'nonsense',
      headers: { Origin: 'https://shop.test' },
    });
    expect([refused.status, refused.code]).toEqual([401, 'unauthorized']);
    expect(refused.headers.get('access-control-allow-origin')).toBe('https://shop.test');
  });
});

describe('open mode', () => {
  const publish = (headers: string) =>
    raw(
      open.port,
      [`POST /v1/topics/item.open/messages HTTP/1.1\r\n${headers}\r\nContent-Length: 1\r\n\r\n1`],
      /\r\n\r\n.*\}/s,
    );
  const json = 'Content-Type: application/json';

  it('serves its own pages and programs', async () => {
    const host = `Host: 127.0.0.1:${open.port}`;
    expect(await publish(`${host}\r\n${json}`)).toMatch(/^HTTP\/1\.1 200 /);
    expect(await publish(`Host: localhost\r\n${json}; charset=utf-8`)).toMatch(/^HTTP\/1\.1 200 /);
    expect(await publish(`${host}\r\nOrigin: http://127.0.0.1:${open.port}\r\n${json}`)).toMatch(/ 200 /);
  });

  it('serves no foreign page, no foreign name, and no form', async () => {
    const host = `Host: 127.0.0.1:${open.port}`;
    expect(await publish(`Host: evil.test\r\n${json}`)).toMatch(/^HTTP\/1\.1 403 /);
    const origins = [
      'https://evil.test',
      'null',
      // Another port of this machine, which may serve anything.
      'http://localhost:3000',
      'http://[::1]:5173',
      'http://localhost.evil.test',
      'http://localhost:1.evil.test',
    ];
    for (const origin of origins) {
      const foreign = await publish(`${host}\r\nOrigin: ${origin}\r\n${json}`);
      expect(foreign).toMatch(/^HTTP\/1\.1 403 /);
      expect(foreign).not.toMatch(/access-control-allow-origin/i);
    }
    expect(await publish(`${host}\r\nContent-Type: text/plain`)).toMatch(/^HTTP\/1\.1 415 /);
    expect(await publish(host)).toMatch(/^HTTP\/1\.1 415 /);
    const events = 'GET /v1/events?topics=item.1 HTTP/1.1\r\nHost: evil.test\r\n\r\n';
    expect(await raw(open.port, [events], /\}/)).toMatch(/^HTTP\/1\.1 403 /);
  });
});

describe('routes', () => {
  it('answers unknown ones with 404 and other methods with 405', async () => {
    for (const path of ['/v1/nothing', '/v1/topics', '/v1/topics/a/b/c', '/v1/']) {
      expect((await call(path)).code).toBe('not_found');
    }
    const answer = await call('/v1/publish', { method: 'PUT', body: '1' });
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST, OPTIONS']);
    expect((await call('/v1/publish')).status).toBe(405);
    expect((await call('/v1/users/u/topics')).headers.get('allow')).toBe('POST, DELETE, OPTIONS');
  });

  it('answers HEAD without a body', async () => {
    const answer = await call('/healthz', { method: 'HEAD', token: '' });
    expect([answer.status, answer.text]).toEqual([200, '']);
    expect(answer.headers.get('content-length')).toBe('15');
    expect((await call('/readyz', { token: '' })).status).toBe(200);
  });

  it('allows what browsers ask for beforehand', async () => {
    const answer = await call('/v1/topics/item.1/messages', {
      method: 'OPTIONS',
      token: '',
      headers: { Origin: 'https://shop.test', 'Access-Control-Request-Method': 'POST' },
    });
    expect(answer.status).toBe(204);
    expect(answer.headers.get('access-control-allow-origin')).toBe('https://shop.test');
    expect(answer.headers.get('access-control-allow-methods')).toBe('GET, HEAD, POST, OPTIONS');
    const allowed = answer.headers.get('access-control-allow-headers') ?? '';
    for (const name of ['Authorization', 'Content-Type', 'Idempotency-Key', 'Last-Event-ID']) {
      expect(allowed).toContain(name);
    }
    const foreign = await call('/v1/publish', {
      method: 'OPTIONS',
      headers: { Origin: 'https://evil.test' },
      to: open,
    });
    expect(foreign.headers.get('access-control-allow-origin')).toBeNull();
  });

  it('serves the metrics', async () => {
    const answer = await call('/metrics');
    expect(answer.headers.get('content-type')).toMatch(/^text\/plain/);
    expect(answer.text).toContain('topicast_connections ');
  });

  it('serves the metrics on a port of their own, and there alone', async () => {
    const port = await freePort();
    const own = await startNode({ TOPICAST_METRICS_PORT: String(port) });
    const answer = await fetch(`http://127.0.0.1:${port}/metrics`);
    expect([answer.status, await answer.text()]).toEqual([
      200,
      expect.stringContaining('topicast_connections '),
    ]);
    expect((await fetch(`http://127.0.0.1:${port}/other`)).status).toBe(404);
    expect((await call('/metrics', { to: own })).status).toBe(404);
    await own.stop();
  });
});

/** A port that was free a moment ago. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}
