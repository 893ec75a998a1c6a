import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freshPrefix, startTestNode, type TestNode } from '../support/nats-bus.js';
import { natsServers } from '../support/servers/binaries.js';
import { startNatsCluster, type NatsServers } from '../support/servers/nats-kit.js';

interface Info {
  readonly config: { readonly num_replicas: number };
  readonly cluster: { readonly replicas?: readonly { readonly current: boolean }[] };
}

describe.each(natsServers())('copies, nats-server $version', ({ version }) => {
  let servers: NatsServers;
  beforeAll(async () => {
    servers = await startNatsCluster(3, { version });
  });
  afterAll(() => servers.stop());

  async function copiesOf(node: TestNode, stream: string): Promise<{ wanted: number; current: number }> {
    const { cluster, config } = await node.link.api<Info>(`STREAM.INFO.${stream}`);
    // The leader lists the others.
    const current = 1 + (cluster.replicas?.filter((copy) => copy.current).length ?? 0);
    return { wanted: config.num_replicas, current };
  }

  it('of a stream and of the bucket of epochs are raised by a later start, and never lowered', async () => {
    const prefix = freshPrefix();
    const assets = [`${prefix}_item`, `KV_${prefix}_epochs`];
    const start = (replicas: number): Promise<TestNode> =>
      startTestNode({ servers: servers.urls, prefix, replicas });

    const single = await start(1);
    const { epoch } = await single.store('item.1', 1);
    for (const asset of assets) expect(await copiesOf(single, asset)).toEqual({ wanted: 1, current: 1 });
    await single.stop();

    const triple = await start(3);
    for (const asset of assets) {
      await expect
        .poll(() => copiesOf(triple, asset), { timeout: 30_000 })
        .toEqual({ wanted: 3, current: 3 });
    }
    // What was there stays: the message, and the epoch that its position belongs to.
    expect(await triple.store('item.1', 2)).toMatchObject({ epoch, offset: 2 });
    await triple.stop();

    const again = await start(1);
    for (const asset of assets) expect((await copiesOf(again, asset)).wanted).toBe(3);
    expect(again.faults).toEqual([]);
    await again.stop();
  });
});
