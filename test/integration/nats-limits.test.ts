import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Published } from '../../broker/bus.js';
import { createNamespaces, type NamespaceSettings } from '../../broker/namespaces.js';
import { freshPrefix, item, startTestNode, type TestNode } from '../support/nats-bus.js';
import { eventually } from '../support/signal.js';
import { natsServers } from '../support/servers/binaries.js';
import { startNats, type NatsServers } from '../support/servers/nats-kit.js';

interface Info {
  readonly config: Record<string, unknown>;
}

/** A limit that is no longer in force is closed ten seconds after the change at the earliest, which is why the tests run side by side. */
const settledMsMax = 30_000;

describe.each(natsServers())('a changed historyMax, nats-server $version', ({ version }) => {
  let servers: NatsServers;
  const nodes: TestNode[] = [];

  beforeAll(async () => {
    servers = await startNats({ version });
  });
  afterAll(async () => {
    for (const node of nodes) expect(node.faults).toEqual([]);
    await Promise.all(nodes.map((node) => node.stop()));
    await servers.stop();
  });

  async function start(prefix: string, settings: Partial<NamespaceSettings>): Promise<TestNode> {
    const namespaces = createNamespaces({ item: { ...item, ...settings } });
    const node = await startTestNode({ servers: servers.urls, prefix, namespaces, auditSec: 1 });
    nodes.push(node);
    return node;
  }

  async function storeMany(node: TestNode, topic: string, count: number): Promise<Published[]> {
    const published: Published[] = [];
    for (let i = 1; i <= count; i++) published.push(await node.store(topic, i));
    return published;
  }

  /** Whether a client that has everything up to `offset` is told that it can have what followed. */
  async function isComplete(node: TestNode, filter: string, offset: number): Promise<boolean> {
    const complete = await node.bus.recoverable([filter], offset);
    expect((await node.bus.history([filter], offset, 100)).complete).toBe(complete);
    return complete;
  }

  /** Waits until topics that are new are not suspected of anything: of each one `count` messages are stored after the offset. */
  async function untilSettled(node: TestNode, count: number, offset: number): Promise<void> {
    let topics = 0;
    const isNewComplete = async (): Promise<boolean> => {
      const topic = `item.new-${++topics}`;
      await storeMany(node, topic, count);
      return node.bus.recoverable([topic], offset);
    };
    await eventually('new topics are complete', isNewComplete, settledMsMax);
  }

  it.concurrent('does not make a topic look complete that had overflowed before it was raised', async () => {
    const prefix = freshPrefix();
    const before = await start(prefix, { historyMax: 3 });
    const { offset: begin } = await before.store('item.first', 0);
    await storeMany(before, 'item.few', 2);
    const over = await storeMany(before, 'item.over', 5);
    const after = await start(prefix, { historyMax: 10 });
    for (const filter of ['item.over', 'item.*']) {
      expect(await isComplete(after, filter, begin)).toBe(false);
      expect(await isComplete(after, filter, over[2]!.offset)).toBe(true);
    }
    // It had too few to have dropped any.
    expect(await isComplete(after, 'item.few', begin)).toBe(true);
    expect(await isComplete(after, 'item.none', begin)).toBe(true);
    await storeMany(after, 'item.over', 5);
    expect(await isComplete(after, 'item.over', begin)).toBe(false);
    await untilSettled(after, 4, begin);
    for (const node of [before, after]) {
      expect(await isComplete(node, 'item.over', begin)).toBe(false);
      expect(await isComplete(node, 'item.few', begin)).toBe(true);
    }
  });

  it.concurrent('is told by nodes that are set to different ones, in whatever order they start', async () => {
    const prefix = freshPrefix();
    const first = await start(prefix, { historyMax: 3 });
    const { offset: begin } = await first.store('item.first', 0);
    await storeMany(first, 'item.a', 5);
    const second = await start(prefix, { historyMax: 10 });
    await storeMany(second, 'item.b', 6);
    const all = [first, second];
    const complete = (topic: string): Promise<boolean[]> =>
      Promise.all(all.map((node) => isComplete(node, topic, begin)));
    expect(await complete('item.a')).toEqual([false, false]);
    // A node that is set to less lowers it again, and drops what is beyond …
    all.push(await start(prefix, { historyMax: 2 }));
    expect(await complete('item.b')).toEqual([false, false, false]);
    // … which stays lost when another one raises it.
    all.push(await start(prefix, { historyMax: 20 }));
    for (const topic of ['item.a', 'item.b', 'item.*']) {
      expect(await complete(topic)).toEqual([false, false, false, false]);
    }
    await second.store('item.c', 1);
    expect(await complete('item.c')).toEqual([true, true, true, true]);
  });

  it.concurrent('matters no more to a topic when what it had before has expired', async () => {
    const prefix = freshPrefix();
    const before = await start(prefix, { historyMax: 3, historySec: 2 });
    const [first] = await storeMany(before, 'item.over', 5);
    const after = await start(prefix, { historyMax: 10, historySec: 2 });
    const untilExpired = (): Promise<void> =>
      eventually(
        'all is dropped',
        async () => (await after.bus.history(['item.over'], 0, 10)).messages.length === 0,
      );
    await untilExpired();
    expect(await isComplete(after, 'item.over', first!.offset)).toBe(false);
    const isNewComplete = async (): Promise<boolean> => {
      await untilExpired();
      const { offset } = await after.store('item.mark', 0);
      await storeMany(after, 'item.over', 4);
      return after.bus.recoverable(['item.over'], offset);
    };
    await eventually('new messages are complete', isNewComplete, settledMsMax);
  });

  it.concurrent('is noticed when it is done by hand', async () => {
    const prefix = freshPrefix();
    const node = await start(prefix, { historyMax: 3 });
    const { offset: begin } = await node.store('item.first', 0);
    await storeMany(node, 'item.over', 5);
    const { config } = await node.link.api<Info>(`STREAM.INFO.${prefix}_item`);
    await node.link.api(`STREAM.UPDATE.${prefix}_item`, { ...config, max_msgs_per_subject: 10 });
    expect(await isComplete(node, 'item.over', begin)).toBe(false);
    await untilSettled(node, 4, begin);
    expect(await isComplete(node, 'item.over', begin)).toBe(false);
  });

  it.concurrent('is forgotten with the stream', async () => {
    const prefix = freshPrefix();
    const before = await start(prefix, { historyMax: 3 });
    await before.store('item.first', 0);
    const [, , , , fifth] = await storeMany(before, 'item.1', 5);
    // It would make the stream again as well.
    await before.stop();
    const node = await start(prefix, { historyMax: 10 });
    await untilSettled(node, 4, 1);
    await node.link.api(`STREAM.DELETE.${prefix}_item`);
    await node.signal.until('a new epoch', () => node.epochs.length === 1);
    await node.store('item.first', 0);
    const again = await storeMany(node, 'item.again', 4);
    expect(again[0]!.offset).toBeLessThan(fifth!.offset);
    expect(await isComplete(node, 'item.again', 1)).toBe(true);
  });

  it.concurrent('is taken for possible when what is kept of it cannot be read', async () => {
    const prefix = freshPrefix();
    const node = await start(prefix, { historyMax: 10 });
    const { offset: begin } = await node.store('item.first', 0);
    await node.store('item.1', 1);
    expect(await isComplete(node, 'item.1', begin)).toBe(true);
    const kv = await node.link.nc.jetstream().views.kv(`${prefix}_epochs`);
    for (const record of ['no JSON', '[{"max":-1,"upTo":1}]']) {
      await kv.put('limits.item', record);
      expect(await isComplete(node, 'item.1', begin)).toBe(false);
    }
    await untilSettled(node, 1, begin);
    expect(await isComplete(node, 'item.1', begin)).toBe(false);
  });
});
