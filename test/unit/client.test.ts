import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  connect,
  memoryStorage,
  type Client,
  type ClientEvents,
  type ClientOptions,
} from '../../client/mod.js';
import { FakeSocket } from '../support/fake-socket.js';

const sec = 1000;
let sockets: FakeSocket[];
let clients: Client[];
/** What the probe is answered; undefined: nobody answers. */
let refusal: { status: number; retryAfter?: string } | undefined;
let probes: string[];

beforeEach(() => {
  vi.useFakeTimers();
  [sockets, clients, probes] = [[], [], []];
  refusal = undefined;
});
afterEach(() => {
  for (const client of clients) client.close();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const webSocket = (url: string, protocols: string[]): FakeSocket => {
  const socket = new FakeSocket(url, protocols);
  sockets.push(socket);
  return socket;
};
const fetch = async (url: string) => {
  probes.push(url);
  if (refusal === undefined) throw new TypeError('failed to fetch');
  const { status, retryAfter = null } = refusal;
  return { status, headers: { get: (name: string) => (name === 'retry-after' ? retryAfter : null) } };
};

/** Lets what waits only for promises happen. */
const settle = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);

async function start(options: ClientOptions = {}): Promise<Client> {
  const client = connect('https://node.example/base/', { webSocket, fetch, random: () => 0.5, ...options });
  clients.push(client);
  await settle();
  return client;
}

function collect<K extends keyof ClientEvents>(client: Client, name: K): ClientEvents[K][] {
  const events: ClientEvents[K][] = [];
  client.on(name, (event) => events.push(event));
  return events;
}

const newest = (): FakeSocket => sockets.at(-1)!;

describe('connecting', () => {
  test('asks for everything subscribed so far, in the handshake', async () => {
    const client = connect('https://node.example/base/', {
      webSocket,
      fetch,
      token: 'a.b.c',
      topics: ['item.1'],
      user: 'u v',
    });
    clients.push(client);
    client.subscribe('price.>', () => undefined);
    client.subscribe('item.2', () => undefined, { last: 5 });
    expect(client.state).toBe('connecting');
    await settle();
    const [socket] = sockets;
    expect(socket!.url).toBe('wss://node.example/base/v1/connect?user=u%20v&topics=item.1,price.%3E');
    expect(socket!.protocols).toEqual(['topicast.v1.json', 'bearer.a.b.c']);
    socket!.welcome();
    expect(client.state).toBe('open');
    expect(socket!.sent).toEqual([{ type: 'subscribe', req: 1, topics: [{ topic: 'item.2', last: 5 }] }]);
  });

  test.each(['ftp://node', 'node:8080', '', '/'])('refuses an address that is none: %s', (url) => {
    expect(() => connect(url)).toThrow(TypeError);
  });

  test('refuses a topic that is none', async () => {
    const client = await start();
    expect(() => client.subscribe('*.a', () => undefined)).toThrow('not a topic: *.a');
    expect(() => client.subscribe('a', () => undefined, { last: 1.5 })).toThrow(TypeError);
  });

  test('tells of a missing WebSocket', async () => {
    vi.stubGlobal('WebSocket', undefined);
    const client = connect('http://node');
    const errors = collect(client, 'error');
    await settle();
    expect(client.state).toBe('closed');
    expect(errors).toMatchObject([{ code: 'environment' }]);
  });

  test('gathers what is subscribed at one moment into one frame, and undoes it', async () => {
    const client = await start();
    newest().welcome();
    const ends = ['a', 'b', 'c'].map((topic) => client.subscribe(topic, () => undefined));
    ends[1]!();
    await settle();
    expect(newest().sent).toEqual([{ type: 'subscribe', req: 1, topics: [{ topic: 'a' }, { topic: 'c' }] }]);
    ends[0]!();
    ends[0]!();
    await settle();
    expect(newest().sent.slice(1)).toEqual([{ type: 'unsubscribe', req: 2, topics: ['a'] }]);
  });

  test('a topic that is left and taken again at once is asked for anew', async () => {
    const client = await start();
    newest().welcome();
    const first = client.subscribe('item.1', () => undefined);
    await settle();
    newest().receive({
      type: 'subscribed',
      req: 1,
      topics: [{ topic: 'item.1', epoch: 'e', offset: 5, recovered: true }],
    });
    first();
    const got: unknown[] = [];
    client.subscribe('item.1', ({ data }) => got.push(data));
    await settle();
    expect(newest().sent).toHaveLength(2);
    newest().receive({
      type: 'subscribed',
      req: 2,
      topics: [{ topic: 'item.1', epoch: 'e', offset: 7, recovered: true }],
    });
    newest().message('item.1', 8);
    expect(got).toEqual([8]);
  });
});

describe('coming back', () => {
  test('waits longer each time, and starts over after a connection that held', async () => {
    const client = await start();
    const waits: (number | undefined)[] = [];
    client.on('state', ({ state, retryMs }) => {
      if (state === 'waiting') waits.push(retryMs);
    });
    for (let i = 0; i < 9; i++) {
      newest().cut();
      await vi.advanceTimersByTimeAsync(15 * sec);
    }
    expect(waits).toEqual([250, 500, 1000, 2000, 4000, 8000, 15_000, 15_000, 15_000]);
    newest().welcome();
    await vi.advanceTimersByTimeAsync(6 * sec);
    newest().cut();
    await settle();
    expect(waits.at(-1)).toBe(250);
  });

  test('honours what the server asks for, also when the page wakes', async () => {
    const client = await start();
    newest().welcome();
    newest().receive({ type: 'bye', code: 4000, reason: 'draining', retryMs: 7000 });
    await settle();
    expect(client.state).toBe('waiting');
    client.wake();
    await vi.advanceTimersByTimeAsync(6.9 * sec);
    expect(sockets).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(0.2 * sec);
    expect(sockets).toHaveLength(2);
    expect(probes).toEqual([]);
  });

  test('asks once why an upgrade failed, and waits as long as that says', async () => {
    await start({ token: 't' });
    refusal = { status: 503, retryAfter: '9' };
    newest().cut();
    await vi.advanceTimersByTimeAsync(8.9 * sec);
    expect(probes).toEqual(['https://node.example/base/v1/connect']);
    expect(sockets).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(0.2 * sec);
    expect(sockets).toHaveLength(2);
  });

  test.each([403, 404, 400])('ends when it is refused with %i', async (status) => {
    const client = await start();
    const opened = client.whenOpen();
    const refused = expect(opened).rejects.toMatchObject({ code: 'refused' });
    collect(client, 'error');
    refusal = { status };
    newest().cut();
    await settle();
    await refused;
    expect(client.state).toBe('closed');
  });

  test('takes a 404 for a passing state of a proxy once it has been connected', async () => {
    const client = await start();
    newest().welcome();
    newest().cut();
    await vi.advanceTimersByTimeAsync(1 * sec);
    refusal = { status: 404 };
    newest().cut();
    await settle();
    expect(client.state).toBe('waiting');
  });

  test('asks for another token once after a 401, without waiting', async () => {
    const tokens = ['first', 'second', 'third'];
    const client = await start({ getToken: () => tokens.shift() ?? '' });
    const errors = collect(client, 'error');
    refusal = { status: 401 };
    newest().cut();
    await settle();
    expect(newest().protocols[1]).toBe('bearer.second');
    newest().welcome();
    // Having been let in since, it has another try.
    newest().cut();
    await vi.advanceTimersByTimeAsync(1 * sec);
    newest().cut();
    await settle();
    expect(newest().protocols[1]).toBe('bearer.third');
    newest().cut();
    await settle();
    expect(client.state).toBe('closed');
    expect(errors).toMatchObject([{ code: 'unauthorized' }]);
  });

  test('tries again when no token can be had', async () => {
    let calls = 0;
    const getToken = async () => {
      if (++calls === 1) throw new Error('offline');
      return 'fresh';
    };
    const client = connect('http://node', { webSocket, fetch, getToken });
    clients.push(client);
    const errors = collect(client, 'error');
    await settle();
    expect(errors).toMatchObject([{ code: 'token', message: 'getToken failed: offline' }]);
    await vi.advanceTimersByTimeAsync(1 * sec);
    expect(newest().protocols[1]).toBe('bearer.fresh');
  });

  test.each([4500, 4502, 4999])('does not come back after %i', async (code) => {
    const client = await start();
    const errors = collect(client, 'error');
    newest().welcome();
    newest().cut(code, 'go away');
    await vi.advanceTimersByTimeAsync(60 * sec);
    expect(sockets).toHaveLength(1);
    expect(client.state).toBe('closed');
    expect(errors).toMatchObject([{ code: 'refused' }]);
  });

  test('fetches a new token after 4002, and keeps the one it has after anything else', async () => {
    let count = 0;
    await start({ getToken: () => `token${++count}` });
    newest().welcome();
    newest().cut(4003);
    await vi.advanceTimersByTimeAsync(1 * sec);
    expect(newest().protocols[1]).toBe('bearer.token1');
    newest().welcome();
    newest().cut(4002);
    await vi.advanceTimersByTimeAsync(1 * sec);
    expect(newest().protocols[1]).toBe('bearer.token2');
  });

  test('sends a fresh token on the living connection when the old one ends soon', async () => {
    let count = 0;
    await start({ getToken: async () => `token${++count}` });
    newest().welcome();
    newest().receive({ type: 'expiring', inSec: 60 });
    await settle();
    expect(newest().sent).toEqual([{ type: 'auth', req: 1, token: 'token2' }]);
    expect(sockets).toHaveLength(1);
  });

  test('tells of a fresh token that was refused, and begins the next connection with another', async () => {
    let count = 0;
    const client = await start({ getToken: async () => `token${++count}` });
    const errors = collect(client, 'error');
    newest().welcome();
    newest().receive({ type: 'expiring', inSec: 60 });
    await settle();
    newest().receive({ type: 'error', req: 1, code: 'forbidden', message: 'not a valid token of this user' });
    expect(errors).toMatchObject([
      { code: 'token', message: expect.stringContaining('not a valid') as string },
    ]);
    expect(client.state).toBe('open');
    newest().cut();
    await vi.advanceTimersByTimeAsync(1 * sec);
    expect(newest().protocols[1]).toBe('bearer.token3');
  });

  test('goes on when no fresh token can be had, and asks again when the old one has ended', async () => {
    let count = 0;
    const getToken = async () => {
      if (++count === 2) throw new Error('offline');
      return `token${count}`;
    };
    const client = await start({ getToken });
    const errors = collect(client, 'error');
    newest().welcome();
    newest().receive({ type: 'expiring', inSec: 60 });
    await settle();
    expect(errors).toMatchObject([{ code: 'token', message: 'getToken failed: offline' }]);
    expect([client.state, newest().sent]).toEqual(['open', []]);
    newest().cut(4002);
    await vi.advanceTimersByTimeAsync(1 * sec);
    expect(newest().protocols[1]).toBe('bearer.token3');
  });

  test('begins with short waits again when the page woke it', async () => {
    const client = await start();
    const waits: (number | undefined)[] = [];
    client.on('state', ({ retryMs, state }) => {
      if (state === 'waiting') waits.push(retryMs);
    });
    for (let i = 0; i < 8; i++) {
      newest().cut();
      await vi.advanceTimersByTimeAsync(i < 7 ? 15 * sec : 0);
    }
    expect(waits.at(-1)).toBe(15_000);
    client.wake();
    await settle();
    newest().cut();
    await settle();
    expect(waits.at(-1)).toBe(250);
  });

  test('connects at once when the page comes back or the network does', async () => {
    const page = new EventTarget();
    const document = Object.assign(new EventTarget(), { visibilityState: 'visible' });
    vi.stubGlobal('document', document);
    vi.stubGlobal('addEventListener', page.addEventListener.bind(page));
    vi.stubGlobal('removeEventListener', page.removeEventListener.bind(page));
    const client = await start();
    for (const wake of [
      () => page.dispatchEvent(new Event('online')),
      () => document.dispatchEvent(new Event('visibilitychange')),
    ]) {
      const before = sockets.length;
      newest().cut();
      await settle();
      expect(client.state).toBe('waiting');
      wake();
      await settle();
      expect(sockets).toHaveLength(before + 1);
    }
    client.close();
    page.dispatchEvent(new Event('online'));
    await vi.advanceTimersByTimeAsync(60 * sec);
    expect(sockets).toHaveLength(3);
  });
});

describe('a line that is dead without anybody saying so', () => {
  test('is noticed by a ping without an answer', async () => {
    const client = await start();
    newest().welcome({ pingSec: 30 });
    await vi.advanceTimersByTimeAsync(30 * sec);
    expect(newest().ofType('ping')).toHaveLength(1);
    newest().receive({ type: 'pong' });
    await vi.advanceTimersByTimeAsync(30 * sec + 9.9 * sec);
    expect(client.state).toBe('open');
    await vi.advanceTimersByTimeAsync(0.2 * sec);
    expect(sockets[0]!.closed).toBe(true);
    expect(client.state).toBe('waiting');
  });

  test('is looked for as soon as the page comes back', async () => {
    const client = await start();
    newest().welcome();
    client.wake();
    expect(newest().ofType('ping')).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(4.1 * sec);
    expect(client.state).toBe('waiting');
  });

  test('is not taken for one when only the timers were held up', async () => {
    const client = await start();
    newest().welcome();
    client.wake();
    // The page is frozen for an hour; the timer is the first that runs after it.
    vi.setSystemTime(Date.now() + 3600 * sec);
    await vi.advanceTimersByTimeAsync(4.1 * sec);
    expect(client.state).toBe('open');
    newest().receive({ type: 'pong' });
    await vi.advanceTimersByTimeAsync(5 * sec);
    expect(client.state).toBe('open');
  });

  test('is given up when no welcome comes', async () => {
    const client = await start();
    await vi.advanceTimersByTimeAsync(20.1 * sec);
    expect(sockets[0]!.closed).toBe(true);
    // What it says afterwards does not count.
    sockets[0]!.welcome();
    expect(client.state).not.toBe('open');
  });
});

describe('messages', () => {
  test('are resumed by position, those of quiet topics by the floor', async () => {
    const client = await start({ topics: ['item.1', 'item.2', 'live.x'] });
    newest().welcome();
    newest().receive({
      type: 'subscribed',
      topics: [
        { topic: 'item.1', epoch: 'e', offset: 5, recovered: true },
        { topic: 'item.2', epoch: 'e', offset: 5, recovered: true },
        { topic: 'live.x' },
      ],
    });
    const got = collect(client, 'message');
    newest().message('item.1', 9);
    newest().message('item.1', 9);
    expect(got).toEqual([{ topic: 'item.1', data: 9, offset: 9 }]);
    newest().receive({ type: 'pong', floors: { item: 'e:8' } });
    newest().cut();
    await vi.advanceTimersByTimeAsync(1 * sec);
    expect(newest().topics).toEqual(['item.1@e:9', 'item.2@e:8', 'live.x']);
  });

  test('of a topic held exactly and by a pattern reach both handlers once, and events once', async () => {
    const client = await start({ topics: ['item.*', 'item.1'] });
    const got: string[] = [];
    client.subscribe('item.1', ({ offset }) => got.push(`exact ${offset}`));
    client.subscribe('item.*', ({ offset }) => got.push(`pattern ${offset}`));
    client.on('message', ({ offset }) => got.push(`event ${offset}`));
    newest().welcome();
    await settle();
    const both = [
      { topic: 'item.1', epoch: 'e', offset: 0, recovered: true },
      { topic: 'item.*', epoch: 'e', offset: 0, recovered: true },
    ];
    newest().receive({ type: 'subscribed', topics: both });
    newest().message('item.1', 3, 'item.*');
    expect(got.sort()).toEqual(['event 3', 'exact 3', 'pattern 3']);
  });

  test('that could not be recovered, and gaps, are told', async () => {
    const client = await start({ topics: ['item.1'] });
    const unrecovered = collect(client, 'unrecovered');
    const gaps = collect(client, 'gap');
    const at = (epoch: string, offset: number, recovered: boolean) =>
      newest().receive({ type: 'subscribed', topics: [{ topic: 'item.1', epoch, offset, recovered }] });
    newest().welcome();
    at('e', 5, true);
    expect(unrecovered).toEqual([]);
    newest().receive({ type: 'gap', topic: 'item.1', from: 6, to: 8 });
    expect(gaps).toEqual([{ topic: 'item.1', from: 6, to: 8 }]);
    // Unasked: the stream was replaced.
    at('f', 2, false);
    expect(unrecovered).toEqual([{ topic: 'item.1' }]);
    newest().cut();
    await vi.advanceTimersByTimeAsync(1 * sec);
    expect(newest().topics).toEqual(['item.1@f:2']);
  });

  test('after a resync are asked for again on the same connection', async () => {
    const client = await start({ topics: ['item.1'] });
    const got = collect(client, 'message');
    newest().welcome();
    newest().receive({
      type: 'subscribed',
      topics: [{ topic: 'item.1', epoch: 'e', offset: 5, recovered: true }],
    });
    newest().message('item.1', 6);
    newest().receive({ type: 'resync', topics: ['item.1'] });
    expect(newest().sent).toEqual([
      { type: 'subscribe', req: 1, topics: [{ topic: 'item.1', epoch: 'e', offset: 6 }] },
    ]);
    newest().receive({
      type: 'subscribed',
      req: 1,
      topics: [{ topic: 'item.1', epoch: 'e', offset: 6, recovered: true }],
    });
    newest().message('item.1', 7);
    expect(got.map(({ offset }) => offset)).toEqual([6, 7]);
    expect(sockets).toHaveLength(1);
  });

  test('of a request for the last ones that a resync has overtaken do not make a handler step over what it has missed', async () => {
    const client = await start({ topics: ['item.1'] });
    const got = collect(client, 'message');
    const at = (offset: number) => [{ topic: 'item.1', epoch: 'e', offset, recovered: true }];
    newest().welcome();
    newest().receive({ type: 'subscribed', topics: at(5) });
    client.subscribe('item.1', () => undefined, { last: 1 });
    await settle();
    // Dropped 6 and 7, said so, and then took the request: it begins after 7.
    newest().receive({ type: 'resync', topics: ['item.1'] });
    newest().receive({ type: 'subscribed', req: 1, topics: at(7) });
    newest().message('item.1', 8);
    newest().receive({ type: 'subscribed', req: 2, topics: at(7) });
    expect(newest().sent.at(-1)).toMatchObject({ type: 'subscribe', req: 3, topics: [{ offset: 5 }] });
    newest().receive({ type: 'subscribed', req: 3, topics: at(5) });
    for (const offset of [6, 7, 8]) newest().message('item.1', offset);
    expect(got.map(({ offset }) => offset)).toEqual([6, 7, 8]);
  });

  test('come from a topic that was refused once and that a back end subscribes later', async () => {
    const client = await start();
    const got: unknown[] = [];
    client.on('refused', () => undefined);
    newest().welcome();
    client.subscribe('item.1', ({ data }) => got.push(data));
    await settle();
    newest().receive({ type: 'subscribed', req: 1, topics: [{ topic: 'item.1', error: 'forbidden' }] });
    newest().receive({
      type: 'subscribed',
      topics: [{ topic: 'item.1', epoch: 'e', offset: 5, recovered: false }],
    });
    newest().receive({ type: 'msg', topic: 'item.1', offset: 6, data: { format: 'json', text: '"hi"' } });
    expect(got).toEqual(['hi']);
  });

  test('of topics that the token or a back end subscribed come as events', async () => {
    const client = await start();
    const got = collect(client, 'message');
    newest().welcome();
    newest().receive({ type: 'subscribed', topics: [{ topic: 'coupon.food' }] });
    newest().receive({ type: 'msg', topic: 'coupon.food', data: { format: 'json', text: '"hi"' } });
    expect(got).toEqual([{ topic: 'coupon.food', data: 'hi' }]);
    await settle();
    expect(newest().sent).toEqual([]);
    newest().receive({ type: 'unsubscribed', topics: ['coupon.food'], reason: 'server' });
    newest().cut();
    await vi.advanceTimersByTimeAsync(1 * sec);
    expect(newest().topics).toEqual([]);
  });

  test('go on to other handlers when one throws or rejects', async () => {
    const client = await start();
    const errors = collect(client, 'error');
    const got: unknown[] = [];
    client.subscribe('live.x', () => {
      throw new Error('broken');
    });
    client.subscribe('live.x', () => Promise.reject(new Error('later')));
    client.subscribe('live.x', ({ data }) => got.push(data));
    newest().welcome();
    newest().receive({ type: 'msg', topic: 'live.x', data: { format: 'json', text: '1' } });
    await settle();
    expect(got).toEqual([1]);
    expect(errors).toMatchObject([
      { code: 'handler', topic: 'live.x', message: 'a handler failed: broken' },
      { code: 'handler', topic: 'live.x', message: 'a handler failed: later' },
    ]);
  });

  test('a topic that is not to be had for the moment is asked for again', async () => {
    const client = await start({ topics: ['item.1', 'item.2'] });
    const refused = collect(client, 'refused');
    newest().welcome();
    newest().receive({
      type: 'subscribed',
      topics: [
        { topic: 'item.1', error: 'unavailable' },
        { topic: 'item.2', error: 'forbidden' },
      ],
    });
    expect(refused).toEqual([
      { topic: 'item.1', code: 'unavailable', final: false },
      { topic: 'item.2', code: 'forbidden', final: true },
    ]);
    await vi.advanceTimersByTimeAsync(2 * sec);
    expect(newest().sent).toEqual([{ type: 'subscribe', req: 1, topics: [{ topic: 'item.1' }] }]);
    newest().receive({ type: 'error', req: 1, code: 'rate_limited', message: 'slower' });
    await vi.advanceTimersByTimeAsync(2 * sec);
    expect(newest().ofType('subscribe')).toHaveLength(2);
  });

  test('ignores what is no frame', async () => {
    const client = await start();
    const errors = collect(client, 'error');
    newest().welcome();
    for (const data of ['{', '[]', '{"type":"new"}', '{"type":"msg"}', new ArrayBuffer(1)]) {
      newest().onmessage?.({ data });
    }
    expect(errors.map(({ code }) => code)).toEqual([
      'invalid_frame',
      'invalid_frame',
      'invalid_frame',
      'invalid_frame',
    ]);
    expect(client.state).toBe('open');
  });
});

describe('publishing', () => {
  test('waits for a connection, keeps its id over a cut, and settles', async () => {
    const client = await start();
    const data = { a: 1 };
    const first = client.publish('item.1', data);
    data.a = 2;
    await settle();
    newest().welcome();
    const [sent] = newest().ofType('publish');
    expect(sent).toMatchObject({ topic: 'item.1', data: { text: '{"a":1}' } });
    newest().cut();
    const second = client.publish('item.1', 'later', { id: 'mine' });
    await vi.advanceTimersByTimeAsync(1 * sec);
    newest().welcome();
    const again = newest().ofType('publish');
    expect(again.map(({ id }) => id)).toEqual([sent!.id, 'mine']);
    newest().receive(
      { type: 'published', req: again[0]!.req!, topic: 'item.1', offset: 4, epoch: 'e', duplicate: true },
      { type: 'error', req: again[1]!.req!, code: 'forbidden', message: 'no' },
    );
    expect(await first).toEqual({ offset: 4, epoch: 'e', duplicate: true });
    await expect(second).rejects.toMatchObject({ code: 'forbidden', topic: 'item.1' });
  });

  test('is refused when too many wait, and when it cannot be', async () => {
    const client = await start({ publishQueueMax: 2 });
    const waiting = [client.publish('a', 1), client.publish('a', 2)];
    await expect(client.publish('a', 3)).rejects.toMatchObject({ code: 'queue_full' });
    await expect(client.publish('a.*', 3)).rejects.toMatchObject({ code: 'invalid_topic' });
    await expect(client.publish('a', undefined)).rejects.toMatchObject({ code: 'invalid_frame' });
    await expect(client.publish('a', 'ü'.repeat(33_000))).rejects.toMatchObject({
      code: 'payload_too_large',
    });
    client.close();
    for (const publish of waiting) await expect(publish).rejects.toMatchObject({ code: 'closed' });
    await expect(client.publish('a', 1)).rejects.toMatchObject({ code: 'closed' });
  });

  test('keeps below the rate of the node, in order', async () => {
    const client = await start();
    newest().welcome();
    for (let i = 0; i < 300; i++) void client.publish('a', i).catch(() => undefined);
    await settle();
    expect(newest().sent.length).toBe(100);
    await vi.advanceTimersByTimeAsync(1 * sec);
    expect(newest().sent.length).toBeLessThanOrEqual(181);
    await vi.advanceTimersByTimeAsync(2 * sec);
    const texts = newest()
      .ofType('publish')
      .map(({ data }) => data.format === 'json' && data.text);
    expect(texts).toEqual(Array.from({ length: 300 }, (_, i) => String(i)));
  });

  test('slows down when the node says so', async () => {
    const client = await start();
    newest().welcome();
    const published = client.publish('a', 1);
    await settle();
    newest().receive({ type: 'error', req: 1, code: 'rate_limited', message: 'slower' });
    expect(newest().sent).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1.1 * sec);
    expect(newest().sent).toHaveLength(2);
    newest().receive({ type: 'published', req: 2, topic: 'a' });
    expect(await published).toEqual({});
  });

  test('says that the outcome is unknown rather than store twice', async () => {
    const client = await start();
    newest().welcome();
    const published = client.publish('item.1', 1);
    const outcome = expect(published).rejects.toMatchObject({ code: 'outcome_unknown' });
    await settle();
    newest().cut();
    vi.setSystemTime(Date.now() + 121 * sec);
    await vi.advanceTimersByTimeAsync(1 * sec);
    newest().welcome();
    await outcome;
    expect(newest().ofType('publish')).toEqual([]);
  });
});

describe('direct messages', () => {
  const direct = (id: number, text = '1') =>
    newest().receive({ type: 'direct', id, data: { format: 'json', text } });
  const acked = () =>
    newest()
      .ofType('ack')
      .flatMap(({ ids }) => ids);

  test('are acknowledged when their handler is done', async () => {
    const client = await start();
    let done = (): void => undefined;
    client.onDirect(() => new Promise<void>((resolve) => (done = resolve)));
    newest().welcome();
    direct(1);
    direct(1);
    await vi.advanceTimersByTimeAsync(1 * sec);
    expect(acked()).toEqual([]);
    done();
    await vi.advanceTimersByTimeAsync(0.1 * sec);
    expect(acked()).toEqual([1]);
  });

  test('that came before there was a handler are handed to the first', async () => {
    const client = await start();
    newest().welcome();
    direct(1, '"early"');
    const got: unknown[] = [];
    const off = client.onDirect(({ data }) => got.push(data));
    expect(got).toEqual(['early']);
    off();
    direct(2);
    await vi.advanceTimersByTimeAsync(1 * sec);
    expect(acked()).toEqual([1]);
    // Two may be sent to another device meanwhile; this one forgets it with the connection.
    newest().cut();
    await settle();
    client.onDirect(({ data }) => got.push(data));
    expect(got).toEqual(['early']);
  });

  test('are handled once, and acknowledged again when they come again', async () => {
    const client = await start();
    let calls = 0;
    client.onDirect(() => calls++);
    newest().welcome();
    direct(1);
    await settle();
    newest().cut();
    await vi.advanceTimersByTimeAsync(1 * sec);
    newest().welcome();
    expect(acked()).toEqual([1]);
    direct(1);
    await vi.advanceTimersByTimeAsync(1 * sec);
    expect(calls).toBe(1);
    expect(acked()).toEqual([1, 1]);
  });
});

describe('stored positions', () => {
  test('are written now and then and at the end, and resumed by user and address', async () => {
    const writes: string[] = [];
    const memory = memoryStorage();
    const storage = {
      getItem: (key: string) => memory.getItem(key),
      setItem: (key: string, value: string) => {
        writes.push(value);
        memory.setItem(key, value);
      },
    };
    const client = await start({ storage, user: 'u', topics: ['item.1'] });
    newest().welcome();
    const at = { topic: 'item.1', epoch: 'e', recovered: true };
    newest().receive({ type: 'subscribed', topics: [{ ...at, offset: 1 }] });
    newest().message('item.1', 2);
    expect(writes).toEqual([]);
    await vi.advanceTimersByTimeAsync(1 * sec);
    expect(writes).toEqual(['{"item.1":"e:2"}']);
    newest().message('item.1', 3);
    client.close();
    expect(writes.at(-1)).toBe('{"item.1":"e:3"}');
    await start({ storage, user: 'u', topics: ['item.1'] });
    expect(newest().topics).toEqual(['item.1@e:3']);
    await start({ storage, user: 'v', topics: ['item.1'] });
    expect(newest().topics).toEqual(['item.1']);
  });

  test('that cannot be read or written are reported, and everything else goes on', async () => {
    const storage = {
      getItem: () => '{',
      setItem: () => {
        throw new Error('quota');
      },
    };
    const client = connect('http://node', { webSocket, fetch, storage, topics: ['item.1'] });
    clients.push(client);
    const errors = collect(client, 'error');
    await settle();
    newest().welcome();
    newest().receive({
      type: 'subscribed',
      topics: [{ topic: 'item.1', epoch: 'e', offset: 1, recovered: true }],
    });
    await vi.advanceTimersByTimeAsync(1 * sec);
    expect(errors.map(({ code }) => code)).toEqual(['storage', 'storage']);
    expect(client.state).toBe('open');
  });
});
