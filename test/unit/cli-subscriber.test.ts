import { createServer, type IncomingMessage, type Server } from 'node:http';
import { WebSocketServer, type WebSocket } from 'ws';
import { afterEach, describe, expect, it } from 'vitest';
import { CliFailure } from '../../node/cli/errors.js';
import { Subscriber } from '../../node/cli/subscriber.js';
import type { TopicRequest } from '../../protocol/frames.js';

/** A queue that is awaited instead of polled. */
class Inbox<T> {
  private readonly items: T[] = [];
  private readonly waiting: ((item: T) => void)[] = [];
  push(item: T): void {
    const next = this.waiting.shift();
    if (next === undefined) this.items.push(item);
    else next(item);
  }
  next(): Promise<T> {
    const item = this.items.shift();
    return item === undefined ? new Promise((resolve) => this.waiting.push(resolve)) : Promise.resolve(item);
  }
}

/** One accepted connection, played by the test as the server. */
class Peer {
  readonly frames = new Inbox<Record<string, unknown>>();
  readonly closed: Promise<number>;
  readonly request: IncomingMessage;
  private readonly socket: WebSocket;
  constructor(socket: WebSocket, request: IncomingMessage) {
    this.socket = socket;
    this.request = request;
    socket.on('message', (data: Buffer) => {
      this.frames.push(JSON.parse(data.toString()) as Record<string, unknown>);
    });
    this.closed = new Promise((resolve) => socket.on('close', resolve));
  }
  get query(): URLSearchParams {
    return new URL(this.request.url ?? '', 'http://x').searchParams;
  }
  send(...frames: object[]): void {
    for (const frame of frames) this.socket.send(JSON.stringify(frame));
  }
  welcome(pingSec = 30): void {
    this.send({ type: 'welcome', session: 's-1.1', node: 's-1', pingSec, idleSec: 180 });
  }
  close(code?: number, reason?: string): void {
    this.socket.close(code, reason);
  }
  cut(): void {
    this.socket.terminate();
  }
}

interface World {
  readonly url: URL;
  readonly peers: Inbox<Peer>;
  /** What HTTP answers: to the upgrade when `upgrade`, and to a plain GET. */
  refuse: { status: number; upgrade: boolean; retryAfter?: string } | undefined;
  readonly plainRequests: Inbox<IncomingMessage>;
}

const stopping: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stopping.splice(0).reverse()) await stop();
});

async function world(): Promise<World> {
  const made: { refuse: World['refuse'] } = { refuse: undefined };
  const peers = new Inbox<Peer>();
  const plainRequests = new Inbox<IncomingMessage>();
  const sockets = new WebSocketServer({ noServer: true });
  const server: Server = createServer((request, response) => {
    plainRequests.push(request);
    const { status = 200, retryAfter } = made.refuse ?? {};
    response.writeHead(status, retryAfter === undefined ? {} : { 'retry-after': retryAfter }).end();
  });
  server.on('upgrade', (request, socket, head) => {
    const { refuse } = made;
    if (refuse !== undefined) {
      const retry = refuse.retryAfter === undefined ? '' : `Retry-After: ${refuse.retryAfter}\r\n`;
      socket.end(
        refuse.upgrade ? `HTTP/1.1 ${refuse.status} No\r\n${retry}Content-Length: 0\r\n\r\n` : undefined,
      );
      return;
    }
    sockets.handleUpgrade(request, socket, head, (ws) => peers.push(new Peer(ws, request)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stopping.push(() => {
    for (const socket of sockets.clients) socket.terminate();
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return Object.assign(made, { url: new URL(`http://127.0.0.1:${address.port}`), peers, plainRequests });
}

interface Run {
  readonly subscriber: Subscriber;
  readonly messages: Inbox<string>;
  readonly directs: Inbox<number | undefined>;
  readonly statuses: Inbox<string>;
  /** What `run` ended with: undefined, or the reason that it rejected with. */
  readonly ended: Promise<string | undefined>;
  stop(): void;
}

function start(url: URL, requests: readonly TopicRequest[], token?: string): Run {
  const messages = new Inbox<string>();
  const directs = new Inbox<number | undefined>();
  const statuses = new Inbox<string>();
  const stop = new AbortController();
  const target = token === undefined ? { url } : { url, token };
  const subscriber = new Subscriber(
    { target, requests, random: () => 0 },
    {
      message: ({ topic, offset, data }) =>
        messages.push(`${topic}@${offset} ${data.format === 'json' ? data.text : ''}`),
      direct: ({ id }) => directs.push(id),
      status: (line) => statuses.push(line),
    },
  );
  const ended = subscriber.run(stop.signal).then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof CliFailure) return error.message;
      throw error;
    },
  );
  stopping.push(async () => {
    stop.abort();
    await ended;
  });
  return { subscriber, messages, directs, statuses, ended, stop: () => stop.abort() };
}

const item1 = [{ topic: 'item.1' }];
const subscribedAt = (offset: number, recovered = true, epoch = 'e1') => ({
  type: 'subscribed',
  topics: [{ topic: 'item.1', epoch, offset, recovered }],
});
const msg = (offset: number) => ({ type: 'msg', topic: 'item.1', offset, data: { n: offset } });

describe('subscriber', () => {
  it('asks in the handshake, with its token, and resumes after what it has had', async () => {
    const { url, peers } = await world();
    const run = start(url, [...item1, { topic: 'news.>' }], 'T');
    const first = await peers.next();
    expect(first.request.headers.authorization).toBe('Bearer T');
    expect(first.request.headers['sec-websocket-protocol']).toBe('topicast.v1.json');
    expect(first.query.get('topics')).toBe('item.1,news.>');
    first.welcome();
    first.send(subscribedAt(5), msg(6), msg(8), msg(8), msg(7));
    first.cut();
    expect(await run.messages.next()).toBe('item.1@6 {"n":6}');
    expect(await run.messages.next()).toBe('item.1@8 {"n":8}');
    const second = await peers.next();
    expect(second.query.get('topics')).toBe('item.1@e1:8,news.>');
    second.welcome();
    second.send(subscribedAt(8), msg(8), msg(9));
    expect(await run.messages.next()).toBe('item.1@9 {"n":9}');
    run.stop();
    expect(await second.closed).toBe(1000);
    expect(await run.ended).toBeUndefined();
  });

  it('resumes at the floor of a pong, sends pings, and tells of gaps and losses', async () => {
    const { url, peers } = await world();
    const run = start(url, item1);
    const first = await peers.next();
    first.welcome(1);
    first.send(subscribedAt(5), { type: 'gap', topic: 'item.1', from: 6, to: 9 });
    expect(await first.frames.next()).toEqual({ type: 'ping' });
    first.send({ type: 'pong', floors: { item: 'e1:40' } });
    first.close(4000, 'draining');
    const second = await peers.next();
    expect(second.query.get('topics')).toBe('item.1@e1:40');
    second.welcome();
    second.send(subscribedAt(70, false));
    expect(await run.statuses.next()).toMatch(/^connected/);
    expect(await run.statuses.next()).toBe('gap: item.1 lost 6 to 9 for good');
    expect(await run.statuses.next()).toBe('reconnecting in 0.0 s: draining');
    expect(await run.statuses.next()).toMatch(/^connected/);
    expect(await run.statuses.next()).toMatch(/^not recovered: item\.1/);
  });

  it('takes a server that answers no ping for dead', async () => {
    const { url, peers } = await world();
    const run = start(url, item1);
    const first = await peers.next();
    first.welcome(1);
    expect(await first.frames.next()).toEqual({ type: 'ping' });
    await peers.next();
    expect(await run.statuses.next()).toMatch(/^connected/);
    expect(await run.statuses.next()).toBe('reconnecting in 0.0 s: the server does not answer');
  });

  it('subscribes again, with positions, when it is told to resync', async () => {
    const { url, peers } = await world();
    const run = start(url, item1);
    const peer = await peers.next();
    peer.welcome();
    peer.send(subscribedAt(5), msg(6), { type: 'resync', topics: ['item.1'] });
    expect(await peer.frames.next()).toEqual({
      type: 'subscribe',
      req: 1,
      topics: [{ topic: 'item.1', epoch: 'e1', offset: 6 }],
    });
    peer.send(subscribedAt(6), msg(7));
    await run.messages.next();
    expect(await run.messages.next()).toBe('item.1@7 {"n":7}');
  });

  it('asks by a frame after welcome for snapshots, and by position once it has one', async () => {
    const { url, peers } = await world();
    start(url, [{ topic: 'item.1', last: 3 }]);
    const first = await peers.next();
    expect(first.query.has('topics')).toBe(false);
    first.welcome();
    expect(await first.frames.next()).toMatchObject({ topics: [{ topic: 'item.1', last: 3 }] });
    first.send(subscribedAt(5));
    first.close(4000);
    expect((await peers.next()).query.get('topics')).toBe('item.1@e1:5');
  });

  it('acknowledges direct messages in batches, and after a reconnect what it could not before', async () => {
    const { url, peers } = await world();
    const run = start(url, item1);
    const first = await peers.next();
    first.welcome();
    first.send({ type: 'direct', id: 1, data: 1 }, { type: 'direct', id: 2, data: 2 });
    for (const expected of [1, 2]) {
      expect(await run.directs.next()).toBe(expected);
      run.subscriber.ack(expected);
    }
    expect(await first.frames.next()).toEqual({ type: 'ack', ids: [1, 2] });
    first.send({ type: 'direct', id: 3, data: 3 });
    expect(await run.directs.next()).toBe(3);
    first.cut();
    const second = await peers.next();
    run.subscriber.ack(3);
    second.welcome();
    expect(await second.frames.next()).toEqual({ type: 'ack', ids: [3] });
  });

  it('waits as long as bye asks', async () => {
    const { url, peers } = await world();
    const run = start(url, item1);
    const first = await peers.next();
    first.welcome();
    first.send({ type: 'bye', code: 4000, reason: 'draining', retryMs: 300 });
    first.close(4000);
    expect(await run.statuses.next()).toMatch(/^connected/);
    expect(await run.statuses.next()).toBe('bye: draining (4000)');
    expect(await run.statuses.next()).toBe('reconnecting in 0.3 s: draining');
    await peers.next();
  });

  it('gives up when it is closed with a code that says so', async () => {
    const { url, peers } = await world();
    const run = start(url, item1);
    const peer = await peers.next();
    peer.welcome();
    peer.close(4502, 'kicked');
    expect(await run.ended).toBe('closed by the server: kicked (4502)');
  });

  it('gives up when no topic is left', async () => {
    const { url, peers } = await world();
    const run = start(url, item1);
    const peer = await peers.next();
    peer.welcome();
    peer.send({ type: 'subscribed', topics: [{ topic: 'item.1', error: 'forbidden' }] });
    expect(await run.statuses.next()).toMatch(/^connected/);
    expect(await run.statuses.next()).toBe('topic refused: item.1 (forbidden)');
    expect(await run.ended).toBe('every topic was refused');
  });

  it.each([true, false])('gives up when its token is refused (told by the upgrade: %s)', async (upgrade) => {
    const made = await world();
    made.refuse = { status: 401, upgrade };
    expect(await start(made.url, item1).ended).toMatch(/^the token was refused \(401\)/);
    if (!upgrade) expect((await made.plainRequests.next()).url).toMatch(/^\/v1\/connect/);
  });

  it.each([true, false])('comes back to a busy server (told by the upgrade: %s)', async (upgrade) => {
    const made = await world();
    made.refuse = { status: 503, upgrade, retryAfter: '1' };
    const run = start(made.url, item1);
    expect(await run.statuses.next()).toMatch(/^reconnecting in 1\.0 s/);
    made.refuse = undefined;
    await made.peers.next();
  });

  it('says at once that nobody is there, and stops during a wait', async () => {
    const made = await world();
    await stopping.pop()?.();
    expect(await start(made.url, item1).ended).toBe(
      `cannot connect to ${made.url.origin}: connection refused`,
    );
    const busy = await world();
    busy.refuse = { status: 503, upgrade: true, retryAfter: '3000' };
    const run = start(busy.url, item1);
    await run.statuses.next();
    run.stop();
    expect(await run.ended).toBeUndefined();
  });

  it('ignores what it does not know, and keeps running', async () => {
    const { url, peers } = await world();
    const run = start(url, item1);
    const peer = await peers.next();
    peer.welcome();
    peer.send({ type: 'of-version-2' }, ['nonsense'], subscribedAt(5), msg(6));
    expect(await run.messages.next()).toBe('item.1@6 {"n":6}');
  });

  it('reads nothing while it is paused', async () => {
    const { url, peers } = await world();
    const run = start(url, item1);
    const peer = await peers.next();
    peer.welcome();
    await run.statuses.next();
    run.subscriber.pause();
    peer.send(subscribedAt(5), msg(6));
    let read = false;
    const next = run.messages.next().then((line) => {
      read = true;
      return line;
    });
    // A whole exchange over the same loopback, by which the message would have come.
    await fetch(url);
    await fetch(url);
    expect(read).toBe(false);
    run.subscriber.resume();
    expect(await next).toBe('item.1@6 {"n":6}');
  });
});
