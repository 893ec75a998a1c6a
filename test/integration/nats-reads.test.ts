import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { freshPrefix, startTestNode, type TestNode } from '../support/nats-bus.js';
import { startNatsProxy, type NatsProxy } from '../support/proxy.js';
import { natsServers } from '../support/servers/binaries.js';
import { startNats, type NatsServers } from '../support/servers/nats-kit.js';

interface Info {
  readonly state: { readonly consumer_count: number };
}

describe.each(natsServers())('reads of a stream, nats-server $version', ({ version }) => {
  let servers: NatsServers;
  let proxy: NatsProxy;
  let node: TestNode;
  let admin: TestNode;
  let prefix: string;
  let stream: string;

  beforeAll(async () => {
    servers = await startNats({ version });
  });
  afterAll(() => servers.stop());
  beforeEach(async () => {
    proxy = await startNatsProxy(servers.urls[0]!);
    prefix = freshPrefix();
    stream = `${prefix}_item`;
    node = await startTestNode({ servers: [proxy.url], prefix });
    admin = await startTestNode({ servers: servers.urls, prefix });
  });
  afterEach(async () => {
    await Promise.all([node.stop(), admin.stop()]);
    await proxy.close();
  });

  /** Does something between the moment at which the consumer of a read is made and the one at which it may deliver. */
  async function meanwhile<T>(read: Promise<T>, change: () => Promise<unknown>): Promise<T> {
    const consumers = async (): Promise<number> =>
      (await admin.link.api<Info>(`STREAM.INFO.${stream}`)).state.consumer_count;
    await expect.poll(consumers, { timeout: 10_000 }).toBe(1);
    await change();
    proxy.release();
    return read;
  }

  const isInboxOfRead = (subject: string): boolean => /^_INBOX\.\w+$/.test(subject);

  it('end with what there is when messages went before they were delivered', async () => {
    for (let i = 1; i <= 3; i++) await admin.store('item.1', i);
    await admin.store('item.2', 4);
    // A consumer delivers nothing until somebody listens.
    proxy.hold = isInboxOfRead;
    const page = await meanwhile(node.bus.history(['item.1'], 1, 10), () =>
      admin.link.api(`STREAM.PURGE.${stream}`, { filter: `${prefix}.in.item.1` }),
    );
    // What is gone is no failure, and is told.
    expect(page).toMatchObject({ messages: [], more: false, complete: false, lostUpTo: 2, upTo: 4 });
  });

  it('find what was stored after what went', async () => {
    for (let i = 1; i <= 3; i++) await admin.store('item.1', i);
    proxy.hold = isInboxOfRead;
    const page = await meanwhile(node.bus.history(['item.*'], 1, 10), async () => {
      await admin.link.api(`STREAM.PURGE.${stream}`);
      await admin.store('item.1', 4);
    });
    expect(page.messages.map(({ offset }) => offset)).toEqual([4]);
    expect(page).toMatchObject({ more: false, complete: false, upTo: 4 });
  });

  it('notice that the last message was lost on the way', async () => {
    for (let i = 1; i <= 3; i++) await admin.store('item.1', i);
    let seen = 0;
    proxy.drop = (subject) => subject.includes('.in.item') && ++seen === 3;
    const failure: unknown = await node.bus.history(['item.1'], 0, 10).catch((error: unknown) => error);
    expect(proxy.dropped).toBe(1);
    expect(failure).toMatchObject({
      code: 'unavailable',
      cause: { message: 'something was lost at the end' },
    });
    expect((await node.bus.history(['item.1'], 0, 10)).messages).toHaveLength(3);
  });
});
