import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createNamespaces, type NamespaceSettings } from '../../broker/namespaces.js';
import { NatsLink } from '../../broker/nats-link.js';
import type { OutgoingMessage } from '../../broker/bus.js';
import { NatsPublisher, UnknownOutcome } from '../../broker/nats-publisher.js';
import { freshPrefix, item, json, startTestNode, unexpected, type TestNode } from '../support/nats-bus.js';
import { startNatsProxy } from '../support/proxy.js';
import { eventually } from '../support/signal.js';
import { startNats, type NatsServers } from '../support/servers/nats-kit.js';

interface Info {
  readonly config: Record<string, unknown>;
}

let servers: NatsServers;
beforeAll(async () => {
  servers = await startNats();
});
afterAll(() => servers.stop());

function start(prefix: string, settings: Partial<NamespaceSettings> = {}): Promise<TestNode> {
  return startTestNode({
    servers: servers.urls,
    prefix,
    namespaces: createNamespaces({ item: { ...item, ...settings } }),
  });
}

it('brings a stream to changed settings at the next start, and keeps what an operator has set', async () => {
  const prefix = freshPrefix();
  const first = await start(prefix, { historyMax: 10, historySec: 3600 });
  const info = `STREAM.INFO.${prefix}_item`;
  const { config } = await first.link.api<Info>(info);
  // On one server there is one copy, though three are wanted.
  expect(config).toMatchObject({ max_msgs_per_subject: 10, max_age: 3600e9, num_replicas: 1 });
  const changed = { ...config, max_bytes: 12_345_678, description: 'of the operator' };
  await first.link.api(`STREAM.UPDATE.${prefix}_item`, changed);
  const { epoch } = await first.store('item.1', 1);
  await first.stop();
  const second = await start(prefix, { historyMax: 5, historySec: 60 });
  expect((await second.link.api<Info>(info)).config).toMatchObject({
    max_msgs_per_subject: 5,
    max_age: 60e9,
    duplicate_window: 60e9,
    max_bytes: 12_345_678,
    description: 'of the operator',
    num_replicas: 1,
  });
  expect((await second.store('item.1', 2)).epoch).toBe(epoch);
  await second.stop();
});

it('publishes for less than the client does', async () => {
  const node = await start(freshPrefix());
  const subject = `${freshPrefix()}.in.item.1`;
  await node.link.api('STREAM.CREATE.cost', {
    name: 'cost',
    subjects: [subject],
    storage: 'memory',
    num_replicas: 1,
  });
  const publisher = new NatsPublisher(node.link, unexpected);
  const js = node.link.nc.jetstream();
  const count = 5000;
  const cost = async (publish: () => Promise<unknown>): Promise<number> => {
    const since = process.cpuUsage();
    for (let i = 0; i < count; i += 500) await Promise.all(Array.from({ length: 500 }, publish));
    const { system, user } = process.cpuUsage(since);
    return (system + user) / count;
  };
  const ours = (): Promise<unknown> => publisher.publish(subject, '{"price":1}', undefined);
  const theirs = (): Promise<unknown> => js.publish(subject, '{"price":1}');
  await cost(ours);
  await cost(theirs);
  const [a, b] = [await cost(ours), await cost(theirs)];
  console.log(
    `CPU a publish: ${a.toFixed(1)} µs, js.publish ${b.toFixed(1)} µs, ratio ${(b / a).toFixed(1)}`,
  );
  expect((await node.link.api<{ state: { messages: number } }>('STREAM.INFO.cost')).state.messages).toBe(
    4 * count,
  );
  publisher.stop();
  await node.stop();
});

it('says what became of a publish that nobody acknowledges', async () => {
  const proxy = await startNatsProxy(servers.urls[0]!);
  const link = await NatsLink.open({ servers: [proxy.url], name: 'test' });
  const publisher = new NatsPublisher(link, unexpected, 300);
  link.watch((connected) => {
    if (!connected) publisher.onDisconnected();
  });
  // Nobody listens: not stored.
  const nobody = await publisher.publish('nobody', '1', undefined).catch((error: unknown) => error);
  expect(nobody).toMatchObject({ code: 'unavailable' });
  expect(nobody).not.toBeInstanceOf(UnknownOutcome);
  // Somebody listens and does not answer, as a stream that has lost its quorum.
  link.nc.subscribe('mute', { callback: () => undefined });
  await expect(publisher.publish('mute', '1', undefined)).rejects.toBeInstanceOf(UnknownOutcome);
  const inFlight = publisher.publish('mute', '1', undefined);
  proxy.cut();
  await expect(inFlight).rejects.toThrow('was lost before');
  publisher.stop();
  await link.close();
  await proxy.close();
});

it('answers a publish whose acknowledgement was lost with the place where it was stored', async () => {
  const proxy = await startNatsProxy(servers.urls[0]!);
  const prefix = freshPrefix();
  const node = await startTestNode({ servers: [proxy.url], prefix });
  const before = proxy.dropped;
  proxy.drop = (subject) => /^_INBOX\.\w+\.\d+$/.test(subject) && proxy.dropped === before;
  const published = await node.store('item.1', 1, 'id');
  expect(proxy.dropped).toBe(before + 1);
  expect(published).toMatchObject({ offset: 1, duplicate: true });
  await node.stop();
  await proxy.close();
});

describe('messages that are published together', () => {
  const message = (n: number, id?: string): OutgoingMessage => ({
    topic: 'item.1',
    payload: json(n),
    publisher: 'shop',
    ...(id !== undefined && { id }),
  });

  it('are stored once when acknowledgements are lost, and told apart by their ids', async () => {
    const proxy = await startNatsProxy(servers.urls[0]!);
    const node = await startTestNode({ servers: [proxy.url], prefix: freshPrefix() });
    proxy.drop = (subject) => /^_INBOX\.\w+\.\d+-[13]$/.test(subject);
    const outcomes = await node.bus.publishAll([
      message(0, 'a'),
      message(1, 'b'),
      message(2),
      message(3),
      message(4),
    ]);
    expect(outcomes).toMatchObject([
      { offset: 1, duplicate: false },
      { offset: 2, duplicate: true },
      { offset: 3, duplicate: false },
      { code: 'unavailable', message: expect.stringContaining('not known whether') as string },
      { offset: 5, duplicate: false },
    ]);
    await node.stop();
    await proxy.close();
  });

  it('fail alone when the server would not take them, and all that are under way when it is lost', async () => {
    const proxy = await startNatsProxy(servers.urls[0]!);
    const node = await startTestNode({ servers: [proxy.url], prefix: freshPrefix() });
    const tooLarge = { ...message(1), payload: json('x'.repeat(node.link.nc.info!.max_payload)) };
    expect(await node.bus.publishAll([message(0), tooLarge, message(2)])).toMatchObject([
      { offset: 1 },
      { code: 'unavailable', message: 'NATS did not take the message' },
      { offset: 2 },
    ]);
    proxy.drop = (subject) => /^_INBOX\.\w+\.\d+-[0-9]{2}$/.test(subject);
    const dropped = proxy.dropped;
    const inFlight = node.bus.publishAll(Array.from({ length: 100 }, (_, i) => message(i)));
    await eventually('some are acknowledged and others are not', async () => proxy.dropped - dropped === 90);
    proxy.cut();
    const outcomes = await inFlight;
    expect(outcomes.map((outcome) => outcome instanceof Error)).toEqual(outcomes.map((_, i) => i >= 10));
    expect(outcomes[99]).toMatchObject({ code: 'unavailable' });
    await node.stop();
    await proxy.close();
  });
});
