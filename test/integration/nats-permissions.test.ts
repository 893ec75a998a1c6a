import { connect, Events, type NatsConnection } from 'nats';
import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createNamespaces, defaultNamespace } from '../../broker/namespaces.js';
import { item, startTestNode, type TestNode } from '../support/nats-bus.js';
import { natsServers } from '../support/servers/binaries.js';
import { startNats, type NatsServers } from '../support/servers/nats-kit.js';

const config = readFileSync(new URL('../../docs/nats-permissions.conf', import.meta.url), 'utf8');
const namespaces = createNamespaces({ item, news: defaultNamespace });

describe.each(natsServers())('the permissions of the documentation, nats-server $version', ({ version }) => {
  let servers: NatsServers;
  let node: TestNode;
  let publisher: NatsConnection;
  const refused: string[] = [];

  beforeAll(async () => {
    servers = await startNats({ version, config });
    const host = servers.urls[0]!.slice('nats://'.length);
    node = await startTestNode({
      servers: [`nats://node:change-me-node@${host}`],
      prefix: 'tc',
      namespaces,
      auditSec: 1,
    });
    publisher = await connect({
      servers: host,
      user: 'publisher',
      pass: 'change-me-publisher',
      inboxPrefix: '_INBOX_publisher',
    });
    void (async () => {
      for await (const status of publisher.status()) {
        if (status.type === Events.Error) refused.push(JSON.stringify(status));
      }
    })();
  });
  afterAll(async () => {
    await publisher.close();
    await node.stop();
    await servers.stop();
  });
  afterEach(() => expect(node.faults).toEqual([]));

  it('let a node do all that it does', async () => {
    const exact = await node.host('item.1');
    const pattern = await node.host('item.>');
    const live = await node.host('news.*');
    await node.store('item.1', 1, 'id');
    expect((await node.store('item.1', 1, 'id')).duplicate).toBe(true);
    await node.bus.publish({ topic: 'news.1', payload: { format: 'json', text: '3' }, publisher: 'p' });
    await node.signal.until('all', () => [exact, pattern, live].every((one) => one.texts.length === 1));
    expect((await node.bus.history(['item.>'], 0, 10)).messages).toHaveLength(1);
    expect((await node.bus.latest(['item.1'], 10)).messages).toHaveLength(1);
    expect(await node.bus.recoverable(['item.1'], 1)).toBe(true);
    // By an audit, which reads and writes what is kept of the epoch.
    await expect.poll(() => node.bus.floor('item')?.offset, { timeout: 10_000 }).toBe(1);
  });

  it('let a publisher publish, with an acknowledgement, and nothing else', async () => {
    const exact = await node.host('item.2');
    const live = await node.host('news.2');
    const ack = await publisher.request('tc.in.item.2', '"true"');
    expect(JSON.parse(ack.string())).toMatchObject({ stream: 'tc_item' });
    publisher.publish('tc.live.news.2', '"true"');
    const forbidden = [
      'tc.out.item.2',
      'tc.node.x',
      'tc.nodes',
      '$JS.API.STREAM.DELETE.tc_item',
      '$KV.tc_epochs.item',
    ];
    for (const subject of forbidden) publisher.publish(subject, '"forged"');
    await publisher.flush();
    await expect.poll(() => refused.length, { timeout: 10_000 }).toBe(forbidden.length);
    for (const subject of forbidden) expect(refused.join()).toContain(subject);
    await publisher.request('tc.in.item.2', '"fence"');
    await node.signal.until('both', () => exact.texts.length === 2 && live.texts.length === 1);
    expect(exact.texts).toEqual(['"true"', '"fence"']);
  });
});
