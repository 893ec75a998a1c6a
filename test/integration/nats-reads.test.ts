import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openBucket } from '../../broker/nats-bucket.js';
import { NatsDurable } from '../../broker/nats-durable.js';
import { NatsEpochs } from '../../broker/nats-epochs.js';
import { NatsLimits } from '../../broker/nats-limits.js';
import { NatsReader, type StreamSlice } from '../../broker/nats-reader.js';
import { NatsStream } from '../../broker/nats-stream.js';
import { createSubjects } from '../../broker/nats-subjects.js';
import { BusRecorder } from '../support/bus-recorder.js';
import { freshPrefix, item, startTestNode, type TestNode } from '../support/nats-bus.js';
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

  it('say that something expired on the copy that was read, which the leader still has', async () => {
    for (let i = 1; i <= 3; i++) await admin.store('item.1', i);
    const subjects = createSubjects(prefix);
    const bucket = await openBucket(admin.link, subjects.epochsBucket, 1);
    const limits = new NatsLimits(bucket, 'item');
    // Its messages expire soon, so what copies hold may differ.
    const durable = new NatsStream(admin.link, subjects, 'item', { ...item, historySec: 30 }, limits);
    await durable.ensure(1);
    const epochs = new NatsEpochs(bucket);
    const claim = await epochs.claim(durable);
    const reader = new CopyWithout(new Set([1, 2]), admin.link, subjects);
    const parts = { link: admin.link, subjects, stream: durable, reader, epochs, replicas: 1 };
    const faults: unknown[] = [];
    const bus = new NatsDurable(
      { ...parts, handler: new BusRecorder(), onFault: (error) => faults.push(error) },
      claim,
    );
    for (const filter of ['item.1', 'item.*']) {
      expect(await bus.history([filter], 0, 10, 0)).toMatchObject({ complete: false, lostUpTo: 0, upTo: 3 });
      expect(await bus.history([filter], 1, 10, 1)).toMatchObject({ complete: false, lostUpTo: 1, upTo: 3 });
      const { complete, messages } = await bus.history([filter], 2, 10, 2);
      expect(complete).toBe(true);
      expect(messages.map(({ offset }) => offset)).toEqual([3]);
    }
    bus.stop();
    expect(faults).toEqual([]);
  });
});

/** Reads as from a copy of the stream on which some messages have expired already. */
class CopyWithout extends NatsReader {
  readonly #expired: ReadonlySet<number>;

  constructor(expired: ReadonlySet<number>, ...rest: ConstructorParameters<typeof NatsReader>) {
    super(...rest);
    this.#expired = expired;
  }

  override async read(...asked: Parameters<NatsReader['read']>): Promise<StreamSlice> {
    const slice = await super.read(...asked);
    return { ...slice, messages: slice.messages.filter(({ offset }) => !this.#expired.has(offset)) };
  }
}
