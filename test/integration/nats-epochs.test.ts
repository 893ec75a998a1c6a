import { cpSync, rmSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { freshPrefix, startTestNode, type TestNode } from '../support/nats-bus.js';
import { startNats, type NatsServers } from '../support/servers/nats-kit.js';

let servers: NatsServers;
let nodes: TestNode[] = [];

beforeAll(async () => {
  servers = await startNats();
});
afterAll(() => servers.stop());
afterEach(async () => {
  await Promise.all(nodes.map((node) => node.stop()));
  nodes = [];
});

async function start(prefix: string, auditSec = 1): Promise<TestNode> {
  const node = await startTestNode({ servers: servers.urls, prefix, auditSec });
  nodes.push(node);
  return node;
}

async function storeMany(node: TestNode, from: number, to: number): Promise<void> {
  for (let i = from; i <= to; i++) await node.store('item.1', i);
}

/** Stops the server, runs `meanwhile`, and starts it again. */
async function whileStopped(meanwhile: () => void): Promise<void> {
  // SIGTERM: what was stored is on the disk.
  await servers.kill(0, 'SIGTERM');
  meanwhile();
  await servers.restart(0);
  await servers.healthy();
}

/** Copies part of what the server has stored; all of it unless told. */
async function copyStore(part = ''): Promise<{ restore(): Promise<void> }> {
  const folder = `${servers.nodes[0]!.store}${part}`;
  const copy = `${servers.nodes[0]!.store}.copy`;
  await whileStopped(() => cpSync(folder, copy, { recursive: true }));
  return {
    restore: () =>
      whileStopped(() => {
        rmSync(folder, { recursive: true });
        cpSync(copy, folder, { recursive: true });
        rmSync(copy, { recursive: true });
      }),
  };
}

it('keeps the epoch through restarts of the server and of nodes', async () => {
  const prefix = freshPrefix();
  const first = await start(prefix);
  const before = await first.store('item.1', 1);
  await whileStopped(() => undefined);
  await expect.poll(() => first.bus.connected, { timeout: 10_000 }).toBe(true);
  const second = await start(prefix);
  expect((await second.store('item.1', 2)).epoch).toBe(before.epoch);
  expect((await first.store('item.1', 3)).epoch).toBe(before.epoch);
  expect([...first.epochs, ...second.epochs]).toEqual([]);
});

it('is one for nodes that start together', async () => {
  const prefix = freshPrefix();
  const started = await Promise.all([start(prefix), start(prefix), start(prefix)]);
  const epochs = new Set(started.map((node) => node.bus.floor('item')?.epoch));
  expect(epochs.size).toBe(1);
});

it('is a new one when an older copy of everything was restored under a running node', async () => {
  const prefix = freshPrefix();
  const first = await start(prefix);
  await storeMany(first, 1, 5);
  await first.stop();
  const copy = await copyStore();
  const node = await start(prefix);
  const hosted = await node.host('item.1');
  const pattern = await node.host('item.>');
  await storeMany(node, 6, 10);
  await node.signal.until('all', () => hosted.texts.length === 5 && pattern.texts.length === 5);
  const old = node.bus.floor('item')!.epoch;
  // An audit has seen how far the stream has come.
  await expect.poll(() => node.bus.floor('item')?.offset, { timeout: 10_000 }).toBe(10);
  await copy.restore();
  await node.signal.until('the new epoch', () => node.epochs.length > 0);
  expect(node.epochs).toEqual([
    { namespace: 'item', head: { epoch: expect.any(String) as string, offset: 5 } },
  ]);
  const { epoch } = node.epochs[0]!.head;
  expect(epoch).not.toBe(old);
  expect(hosted.channel.feed?.epoch).toBe(epoch);
  expect(await node.store('item.1', 'new')).toEqual({ epoch, offset: 6, duplicate: false });
  const isNew = (texts: readonly string[]): boolean => texts.at(-1) === '"new"';
  await node.signal.until('the new one', () => isNew(hosted.texts) && isNew(pattern.texts));
  const another = await start(prefix);
  expect(another.bus.floor('item')?.epoch).toBe(epoch);
});

for (const more of [0, 20]) {
  it(`is a new one when the stream was restored while all nodes were away, and ${more} were stored since`, async () => {
    const prefix = freshPrefix();
    const first = await start(prefix);
    await storeMany(first, 1, 5);
    await first.stop();
    const copy = await copyStore(`/jetstream/$G/streams/${prefix}_item`);
    const second = await start(prefix);
    await storeMany(second, 6, 10);
    await expect.poll(() => second.bus.floor('item')?.offset, { timeout: 10_000 }).toBe(10);
    const old = second.bus.floor('item')!.epoch;
    await second.stop();
    await copy.restore();
    const foreign = await start(freshPrefix());
    const js = foreign.link.nc.jetstream();
    for (let i = 0; i < more; i++) await js.publish(`${prefix}.in.item.1`, '"foreign"');
    const third = await start(prefix);
    expect(third.bus.floor('item')!.epoch).not.toBe(old);
  });
}

it('is a new one when the stream was deleted and made again, and a deleted one is made again', async () => {
  const prefix = freshPrefix();
  const node = await start(prefix);
  const hosted = await node.host('item.1');
  const pattern = await node.host('item.*');
  await storeMany(node, 1, 3);
  await node.signal.until('all', () => hosted.texts.length === 3 && pattern.texts.length === 3);
  const old = node.bus.floor('item')!.epoch;
  await node.link.api(`STREAM.DELETE.${prefix}_item`);
  await node.signal.until('the new epoch', () => node.epochs.length === 1);
  const stored = await node.store('item.1', 'new');
  expect(stored.offset).toBe(1);
  expect(stored.epoch).not.toBe(old);
  await node.signal.until('the new one', () => hosted.texts.length === 4 && pattern.texts.length === 4);
});

it('tells the new epoch to whoever publishes first after the stream was made again', async () => {
  const prefix = freshPrefix();
  const node = await start(prefix, 2);
  await storeMany(node, 1, 3);
  const config = await node.link.api<{ config: object }>(`STREAM.INFO.${prefix}_item`);
  const old = node.bus.floor('item')!.epoch;
  await expect.poll(() => node.bus.floor('item')?.offset, { timeout: 10_000 }).toBe(3);
  await node.link.api(`STREAM.DELETE.${prefix}_item`);
  await node.link.api(`STREAM.CREATE.${prefix}_item`, config.config);
  await expect(node.bus.head(['item.1'])).rejects.toMatchObject({ code: 'unavailable' });
  const stored = await node.store('item.1', 1);
  expect(stored.offset).toBe(1);
  expect(stored.epoch).not.toBe(old);
  expect(node.epochs).toHaveLength(1);
});
