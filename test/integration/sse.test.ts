import { request } from 'node:http';
import { connect as connectSocket } from 'node:net';
import { beforeAll, describe, expect, it } from 'vitest';
import { connect } from '../support/client.js';
import { EventStream, openStream, requestStream } from '../support/event-stream.js';
import { startNode, type NodeProcess } from '../support/node-process.js';
import { untilEmpty } from '../support/scrape.js';
import { Signal } from '../support/signal.js';
import { apiKey, authEnv, signToken } from '../support/tokens.js';

const bearer = { authorization: `Bearer ${apiKey}` };

let node: NodeProcess;
beforeAll(async () => {
  node = await startNode({ ...authEnv, TOPICAST_LOG_LEVEL: 'error' });
});

async function post(path: string, body: string): Promise<unknown> {
  const response = await fetch(`${node.url}${path}`, {
    method: 'POST',
    headers: { ...bearer, 'content-type': 'application/json' },
    body,
  });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  return response.json();
}

/** Publishes messages to a topic, in order. */
async function publish(topic: string, ...data: readonly unknown[]): Promise<void> {
  const messages = data.map((item) => ({ topic, data: item }));
  await post('/v1/publish', JSON.stringify({ messages }));
}

const dataOf = (text: string): unknown => (JSON.parse(text) as { data: unknown }).data;
const values = (stream: EventStream): unknown[] => stream.messages.map(dataOf);

describe('an event stream', () => {
  it('welcomes, subscribes and delivers the frames of the protocol, on one line each', async () => {
    const stream = await openStream(node.port, ['item.s1', 'price.s1', 'bad..'], bearer);
    expect(stream.response.headers['content-type']).toBe('text/event-stream');
    expect(stream.events.map(({ event }) => event).slice(0, 2)).toEqual(['welcome', 'subscribed']);
    await stream.until('all subscribed', () =>
      ['item.s1', 'price.s1', 'invalid_topic'].every((text) =>
        stream.events.some(({ data, event }) => event === 'subscribed' && data.includes(text)),
      ),
    );
    await post('/v1/topics/item.s1/messages', '{"n":\n  9007199254740993}');
    await post('/v1/topics/price.s1/messages', '1.50');
    await stream.until('both', () => stream.messages.length === 2);
    const [stored, live] = stream.messages;
    expect(stored).toMatch(
      /^\{"type":"msg","topic":"item\.s1","offset":\d+,"data":\{"n": {2}9007199254740993\}\}$/,
    );
    expect(live).toBe('{"type":"msg","topic":"price.s1","data":1.50}');
    expect(stream.lastId).toMatch(/^item\.s1@[\w-]+:\d+$/);
    stream.close();
  });

  it('resumes all its topics by the last id, with nothing lost or twice', async () => {
    const topics = ['item.r1', 'coupon.r.>', 'item.r3'];
    const first = await openStream(node.port, topics, bearer);
    await first.until('subscribed', () => first.lastId.split(',').length === 3);
    await publish('item.r1', 1, 2);
    await publish('coupon.r.a', 3);
    await first.until('three', () => first.messages.length === 3);
    const { lastId } = first;
    first.close();
    await publish('item.r1', 4);
    await publish('coupon.r.b', 5);
    await publish('item.r3', 6);

    const second = await openStream(node.port, topics, { ...bearer, 'last-event-id': lastId });
    await publish('item.r3', 7);
    await second.until('the rest', () => second.messages.length >= 4);
    expect(second.events.filter(({ data }) => data.includes('"recovered":false'))).toEqual([]);
    expect([...values(second)].sort()).toEqual([4, 5, 6, 7]);

    // The same over the query, for clients that cannot set a header.
    const query = new URLSearchParams({ topics: topics.join(','), lastEventId: second.lastId });
    second.close();
    await publish('coupon.r.a', 8);
    const third = new EventStream(await requestStream(node.port, query.toString(), bearer));
    await third.until('the last', () => third.messages.length >= 1);
    expect(values(third)).toEqual([8]);
    third.close();
  });

  it('resumes from the id of every single event', async () => {
    const stream = await openStream(node.port, ['item.e.>', 'item.e.1'], bearer);
    await publish('item.e.1', 0, 1);
    await publish('item.e.2', 2, 3);
    await publish('item.e.1', 4);
    await stream.until('five', () => stream.messages.length === 5);
    const events = stream.events.filter(({ event }) => event === 'message');
    for (const [i, { lastId }] of events.slice(0, -1).entries()) {
      const again = await openStream(node.port, ['item.e.>', 'item.e.1'], {
        ...bearer,
        'last-event-id': lastId,
      });
      await again.until('the rest', () => again.messages.length >= 4 - i);
      expect(values(again)).toEqual([0, 1, 2, 3, 4].slice(i + 1));
      again.close();
    }
    stream.close();
  });

  it('says so when it cannot resume without a loss', async () => {
    await publish('item.lost', 0);
    const stream = await openStream(node.port, ['item.lost'], bearer);
    const { lastId } = stream;
    stream.close();
    const zeros = Array.from({ length: 1000 }, () => 0);
    await publish('item.lost', ...zeros);
    await publish('item.lost', 1);
    const again = await openStream(node.port, ['item.lost'], { ...bearer, 'last-event-id': lastId });
    // The first of them is gone: a thousand newer ones are kept.
    expect((await again.named('subscribed')).data).toContain('"recovered":false');
    again.close();
  });

  it('refuses ids that are malformed and streams whose id would not fit', async () => {
    const malformed = await requestStream(node.port, 'topics=item.1', {
      ...bearer,
      'last-event-id': 'item.1@x',
    });
    expect(malformed.statusCode).toBe(400);
    malformed.destroy();
    const topics = Array.from({ length: 160 }, (_, i) => `item.${'x'.repeat(60)}${i}`).join(',');
    const large = await requestStream(node.port, `topics=${topics}`, bearer);
    expect(large.statusCode).toBe(400);
    expect(await textOf(large)).toContain('too_many_topics');
    const live = await requestStream(node.port, `topics=${topics.replaceAll('item', 'live')}`, bearer);
    expect(live.statusCode).toBe(200);
    live.destroy();
  });

  it('is let in by the rules of the handshake', async () => {
    const none = await requestStream(node.port, 'topics=item.1');
    expect([none.statusCode, await textOf(none)]).toEqual([401, expect.stringContaining('unauthorized')]);
    const token = await signToken({ sub: 'u', topics: ['item.mine'], can: { sub: ['item.1'] } });
    const response = await requestStream(node.port, 'topics=item.2', { authorization: `Bearer ${token}` });
    const stream = new EventStream(response);
    await stream.until('both told', () =>
      ['{"topic":"item.2","error":"forbidden"}', '"topic":"item.mine","epoch"'].every((text) =>
        stream.events.some(({ data }) => data.includes(text)),
      ),
    );
    stream.close();
  });

  it('counts as a subscriber, but neither as a user online nor for direct messages', async () => {
    const token = await signToken({ sub: 'streamer', can: { sub: ['item.count'] } });
    const stream = await openStream(node.port, ['item.count'], { authorization: `Bearer ${token}` });
    const get = async (path: string) =>
      (await fetch(`${node.url}${path}`, { headers: bearer })).json() as Promise<unknown>;
    await stream.until('live', () => stream.lastId !== '');
    expect(await get('/v1/topics/item.count')).toMatchObject({ subscribers: 1 });
    expect(await get('/v1/users/streamer')).toEqual({ online: false, sessions: [] });
    expect(await post('/v1/users/streamer/messages', '1')).toMatchObject({ status: 'queued', sessions: 0 });
    stream.close();
    await untilEmpty(node.port);
  });

  it('follows what the server does with its user, and ends with a farewell', async () => {
    const token = await signToken({ sub: 'guided', can: { sub: ['item.g1'] } });
    const stream = await openStream(node.port, ['item.g1'], { authorization: `Bearer ${token}` });
    await post('/v1/users/guided/topics', '{"topics":["item.g2"]}');
    await stream.until('subscribed', () => stream.lastId.includes('item.g2@'));
    await publish('item.g2', 'x');
    await stream.until('the message', () => stream.messages.length === 1);
    const path = `${node.url}/v1/users/guided/topics`;
    await fetch(path, { method: 'DELETE', headers: bearer, body: '{"topics":["item.g2"]}' });
    await stream.named('unsubscribed');
    expect(stream.lastId).not.toContain('item.g2');
    await fetch(`${node.url}/v1/users/guided/sessions`, { method: 'DELETE', headers: bearer });
    expect((await stream.named('bye')).data).toContain('"code":4502');
    await stream.until('the end', () => stream.ended);
    expect(
      (await requestStream(node.port, 'topics=item.g1', { authorization: `Bearer ${token}` })).statusCode,
    ).toBe(401);
  });

  it('ends with its token', async () => {
    const token = await signToken({ sub: 'brief', can: { sub: ['item.t'] }, ttlSec: 2 });
    const stream = await openStream(node.port, ['item.t'], { authorization: `Bearer ${token}` });
    expect((await stream.named('bye')).data).toContain('"code":4002');
    await stream.until('the end', () => stream.ended);
  });

  it('replays more than a socket takes at once, to a reader that is in no hurry', async () => {
    const page = 'x'.repeat(100_000);
    for (let i = 0; i < 5; i++) {
      await publish('item.long', ...Array.from({ length: 20 }, (_, j) => [i * 20 + j, page]));
    }
    const start = await openStream(node.port, ['item.long'], bearer);
    const epoch = /@([\w-]+):/.exec(start.lastId)?.[1] ?? '';
    start.close();
    const query = `topics=item.long@${epoch}:0`;
    const stream = new EventStream(await requestStream(node.port, query, bearer));
    stream.response.pause();
    await publish('item.long', ['end', '']);
    stream.response.resume();
    await stream.until('all of it', () => stream.messages.length >= 101);
    expect(values(stream).map((value) => (value as unknown[])[0])).toEqual([
      ...Array.from({ length: 100 }, (_, i) => i),
      'end',
    ]);
    stream.close();
  });

  it('ends when its reader is too slow, and comes back with nothing lost', async () => {
    const head = `GET /v1/events?topics=item.slow HTTP/1.1\r\nHost: x\r\nAuthorization: ${bearer.authorization}\r\n\r\n`;
    const socket = connectSocket(node.port, '127.0.0.1');
    const signal = new Signal();
    let text = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      signal.notify();
    });
    socket.write(head);
    await signal.until('subscribed', () => text.includes('event: subscribed'));
    socket.pause();
    const page = 'y'.repeat(200_000);
    const total = 100;
    const watcher = await connect({ port: node.port, token: apiKey, topics: ['item.slow'] });
    await watcher.frame('subscribed');
    for (let i = 0; i < total; i++) await publish('item.slow', [i, page]);
    await watcher.until('everybody else has all', () => watcher.messages.length === total);
    socket.resume();
    // The last chunk of the answer: it ends in order, in the middle of nothing.
    await signal.until('the end of the answer', () => text.endsWith('\n\n\r\n0\r\n\r\n'));
    socket.destroy();
    const got = text.split('\n\n').filter((block) => block.includes('"type":"msg"') && block.endsWith(']}'));
    expect(got.length).toBeGreaterThan(0);
    expect(got.length).toBeLessThan(total);
    const lastId = /^id: (.*)$/m.exec(got.at(-1) ?? '')?.[1] ?? '';

    const again = await openStream(node.port, ['item.slow'], { ...bearer, 'last-event-id': lastId });
    await again.until('the rest', () => again.messages.length >= total - got.length);
    expect(values(again).map((value) => (value as unknown[])[0])).toEqual(
      Array.from({ length: total - got.length }, (_, i) => got.length + i),
    );
    again.close();
    await watcher.close();
    await untilEmpty(node.port);
  });

  it('is moved away when the node stops', async () => {
    const leaving = await startNode({ TOPICAST_LOG_LEVEL: 'error' });
    const stream = await openStream(leaving.port, ['item.1']);
    const stopped = leaving.stop();
    expect((await stream.named('bye')).data).toContain('"code":4000');
    await stream.until('the end', () => stream.ended);
    expect(await stopped).toBe(0);
  });
});

it('does not serve HEAD, which has no end to measure', async () => {
  const status = await new Promise((resolve, reject) => {
    const req = request({
      port: node.port,
      host: '127.0.0.1',
      path: '/v1/events',
      method: 'HEAD',
      agent: false,
    });
    req.on('response', (response) => resolve(response.statusCode));
    req.on('error', reject);
    req.end();
  });
  expect(status).toBe(405);
});

async function textOf(response: AsyncIterable<unknown>): Promise<string> {
  let text = '';
  for await (const chunk of response) text += String(chunk);
  return text;
}
