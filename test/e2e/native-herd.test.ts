import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startNode, type RunningNode } from '../../bench/demo/node-process.js';
import type { FleetOptions } from '../../bench/fleet/fleet-plan.js';
import { startFleet, type Fleet } from '../../bench/fleet/fleet.js';
import type { HerdProgram } from '../../bench/fleet/herd-process.js';
import { payloadText } from '../../bench/fleet/marker.js';
import { nativeHerd } from '../../bench/fleet/native-herd.js';
import { openPublisher, type Publisher, type PublisherOptions } from '../../bench/fleet/publisher.js';
import { fastPublisherEnv } from '../../bench/floor/subjects.js';
import { encodeJsonServer } from '../../protocol/codec-json.js';
import type { ServerFrame } from '../../protocol/frames.js';
import { mainPath } from '../support/child.js';

const env = { TOPICAST_HOST: '127.0.0.1', TOPICAST_PORT: '0', TOPICAST_DRAIN_SEC: '0', ...fastPublisherEnv };
const opened: (() => unknown)[] = [];

let folder: string;
/** Compiled from the sources as they are now. Fails, and says what to install, where there is no compiler. */
let program: HerdProgram;
let node: RunningNode;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'topicast-herd-'));
  program = await nativeHerd({ folder });
  node = await startNode(mainPath, env);
});
afterAll(async () => {
  for (const close of opened.reverse()) await close();
  await node.stop();
  await rm(folder, { recursive: true });
});

async function fleetOf(options: Partial<FleetOptions>): Promise<Fleet> {
  const fleet = await startFleet({ urls: [node.url], sockets: 300, groups: [['a.b']], program, ...options });
  opened.push(() => fleet.stop());
  return fleet;
}

async function publisherOf(options: Partial<PublisherOptions>): Promise<Publisher> {
  const publisher = await openPublisher({ url: node.url, bytes: 80, topics: ['a.b'], ...options });
  opened.push(() => publisher.close());
  return publisher;
}

describe('the program', () => {
  it('is compiled once', async () => {
    expect(await nativeHerd({ folder })).toEqual(program);
    expect(await readdir(folder)).toHaveLength(1);
  });

  it('says what to install when there is no compiler', async () => {
    const empty = await mkdtemp(join(tmpdir(), 'topicast-herd-'));
    await expect(nativeHerd({ folder: empty, path: empty })).rejects.toThrow('apt-get install gcc');
    expect(await readdir(empty)).toEqual([]);
    await rm(empty, { recursive: true });
  });

  it.each<[string, Partial<FleetOptions>]>([
    ['codec', { codec: 'msgpack' }],
    ['tokens', { users: { prefix: 'u', secret: 's' } }],
    ['come back', { comeBack: true }],
    ['nap', { napMs: 20 }],
    ['patterns', { groups: [['a.*']] }],
    ['IPv4', { urls: ['http://localhost:1'] }],
  ])('refuses what it cannot do: %s', async (what, options) => {
    await expect(fleetOf(options)).rejects.toThrow(`native herd`);
    await expect(fleetOf(options)).rejects.toThrow(what);
  });
});

describe('a native fleet on a node', () => {
  it('counts and checks every message of every socket, and takes latencies', async () => {
    const topics = ['coupon.all', 'item.1', 'item.2'];
    const groups = [topics.slice(0, 2), [topics[0]!, topics[2]!]];
    const fleet = await fleetOf({ processes: 2, groups, users: { prefix: 'u' }, firstNumber: 0 });
    expect(await fleet.open()).toMatchObject({ ready: 300, failed: 0, faults: [] });
    await fleet.begin();
    const publisher = await publisherOf({ topics });
    await publisher.send(300, 3000);
    const due = 100 * (300 + 150 + 150);
    await fleet.delivered(due);
    const { latencies, state } = await fleet.measured();
    expect(state).toMatchObject({ messages: due, lost: 0, doubled: 0, disorder: 0, foreign: 0, closed: {} });
    expect(latencies.count).toBe(due);
    expect(latencies.ms(1)).toBeGreaterThan(latencies.ms(0.5));
    expect(latencies.ms(0)).toBeGreaterThan(0);

    expect((await fleet.drop(0.5)).ready).toBe(150);
    expect((await fleet.open()).ready).toBe(300);
    expect(await fleet.close()).toMatchObject({ ready: 0, closed: {}, lost: 0 });
  });

  it('tells of topics that were refused, waits when told to, and of sockets that the server has closed', async () => {
    const refused = await fleetOf({ sockets: 2, groups: [['not..a.topic']] });
    expect((await refused.open()).faults.join()).toContain('invalid_topic');

    const slow = await startNode(mainPath, { ...env, TOPICAST_CONNECT_RATE: '40' });
    opened.push(() => slow.stop());
    const fleet = await fleetOf({ urls: [slow.url], sockets: 100 });
    const state = await fleet.open({ perSec: 5000, atOnce: 100 });
    expect(state).toMatchObject({ ready: 100, failed: 0, faults: [] });
    expect(state.refused).toBeGreaterThan(0);
    await slow.stop();
    await expect.poll(async () => (await fleet.state()).closed).toEqual({ 4000: 100 });
    await expect(fleet.open()).rejects.toThrow('100 of 100 sockets could not be opened: Connection refused');
  });
});

/** A server that sends these bytes, so many at a time, to whoever has upgraded, and keeps what it gets. */
async function scriptedServer(bytes: Buffer, pieceBytes: number) {
  const got: Buffer[] = [];
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket.setNoDelay(true));
    socket.on('error', () => undefined); // A herd ends its sockets by a reset.
    let asked = false;
    socket.on('data', (data) => {
      got.push(data);
      if (!asked) void send(socket);
      asked = true;
    });
  });
  async function send(socket: Socket): Promise<void> {
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      socket.write(bytes.subarray(at, at + pieceBytes));
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  opened.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`;
  return { url, received: () => Buffer.concat(got).toString('latin1') };
}

function frame(opcode: number, payload: string | Uint8Array): Buffer {
  const bytes = Buffer.from(payload);
  return Buffer.concat([Buffer.from([0x80 | opcode]), lengthOf(bytes.length), bytes]);
}

function lengthOf(size: number): Buffer {
  if (size < 126) return Buffer.from([size]);
  if (size < 65_536) return Buffer.from([126, size >> 8, size & 255]);
  return Buffer.from([127, 0, 0, 0, 0, 0, (size >> 16) & 255, (size >> 8) & 255, size & 255]);
}

const [text, close, ping] = [1, 8, 9];

function json(...frames: readonly ServerFrame[]): Buffer {
  return Buffer.concat(frames.map((one) => frame(text, encodeJsonServer(one))));
}

function msg(topic: string, number: number, more: { offset?: number; bytes?: number } = {}): ServerFrame {
  const { bytes = 80, ...rest } = more;
  return {
    type: 'msg',
    topic,
    ...rest,
    data: { format: 'json', text: payloadText({ dueUs: 1, number }, bytes) },
  };
}

const script = Buffer.concat([
  Buffer.from('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n'),
  json(
    { type: 'welcome', session: 'n.1', node: 'n', pingSec: 30, idleSec: 180 },
    { type: 'subscribed', topics: [{ topic: 'a.b', epoch: 'e', offset: 0, recovered: true }] },
    { type: 'subscribed', topics: [{ topic: 'item.1' }] },
  ),
  frame(ping, ''),
  frame(ping, 'marco'),
  json(
    msg('a.b', 0, { offset: 12 }),
    msg('item.1', 0, { bytes: 300 }),
    msg('item.1', 1, { bytes: 70_000 }),
    // A hole of two, of which one comes late and one never; and one that comes again.
    msg('a.b', 3),
    msg('a.b', 1),
    msg('a.b', 1),
    msg('a.c', 0),
    { type: 'direct', id: 17, data: { format: 'json', text: '{"type":"msg","t":[1,{"x":"]"}]}' } },
    { type: 'gap', topic: 'a.b', from: 1, to: 2 },
    { type: 'resync', topics: ['item.1'] },
    { type: 'error', code: 'rate_limited', message: 'slower' },
    { type: 'bye', code: 4000, reason: 'draining', retryMs: 10 },
  ),
  frame(close, Buffer.from([4001 >> 8, 4001 & 255])),
]);

describe.each([1, 7, 4096, script.length])('what comes in pieces of %i bytes', (pieceBytes) => {
  it('is counted and answered', async () => {
    const server = await scriptedServer(script, pieceBytes);
    const groups = [['a.b', 'item.1']];
    const options = { sockets: 1, groups, firstNumber: 0, readyOn: 'upgrade', device: 'phone' } as const;
    const fleet = await fleetOf({ urls: [server.url], users: { prefix: 'u', devices: 2 }, ...options });
    await fleet.open();
    await expect.poll(async () => (await fleet.state()).closed, { timeout: 20_000 }).toEqual({ 4000: 1 });
    expect(await fleet.state()).toMatchObject({
      ...{ messages: 7, lost: 1, disorder: 1, doubled: 1, foreign: 1 },
      ...{ directs: 1, gaps: 1, resyncs: 1, faults: ["refused: 'rate_limited' 'slower'"] },
    });
    const received = server.received();
    expect(received).toContain('GET /v1/connect?topics=a.b,item.1&user=u0&device=phone HTTP/1.1');
    expect(received).toContain('Sec-WebSocket-Protocol: topicast.v1.json');
    // Masked with zero, so it can be read here.
    expect(received).toContain('\x8a\x80\0\0\0\0\x8a\x85\0\0\0\0marco');
    expect(received).toContain('\0\0\0\0{"type":"ack","ids":[17]}');
  });
});

it('is ready when every topic was answered, not before', async () => {
  const until = script.indexOf('"item.1"') - 40;
  const server = await scriptedServer(script.subarray(0, until), 4096);
  const fleet = await fleetOf({ urls: [server.url], sockets: 1, groups: [['a.b', 'item.1']] });
  const opening = fleet.open();
  await expect.poll(server.received).toContain('GET ');
  expect(await fleet.state()).toMatchObject({ ready: 0, opening: 1 });
  expect(await fleet.close()).toMatchObject({ ready: 0, opening: 0 });
  await opening;
});

it('fills one node after the other when told so', async () => {
  const servers = [await scriptedServer(Buffer.alloc(0), 1), await scriptedServer(Buffer.alloc(0), 1)];
  const urls = servers.map(({ url }) => url);
  const spread = { spread: 'processes', processes: 2, processesAtOnce: 1 } as const;
  const fleet = await fleetOf({ urls, sockets: 4, ...spread });
  const opening = fleet.open();
  await expect.poll(() => servers[0]?.received().match(/GET /g)).toHaveLength(2);
  expect(await fleet.state()).toMatchObject({ opening: 2, waiting: 0 });
  expect(servers[1]?.received()).toBe('');
  // Ends the first process's part; then it is the turn of the second.
  await fleet.close();
  await expect.poll(() => servers[1]?.received().match(/GET /g)).toHaveLength(2);
  expect(servers[0]?.received().match(/GET /g)).toHaveLength(2);
  await fleet.close();
  await opening;
});
