import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { publishAll, startTestCluster, type TestCluster } from '../support/cluster.js';
import { seededRandom } from '../support/random.js';
import { ResumingClient } from '../support/resuming-client.js';
import { Traffic } from '../support/traffic.js';

const seed = 20_261_130;
const rounds = 50;
/** Half of the history that a namespace keeps: who is cut again and again before its turn came falls out of it, and is told so. */
const lagMax = 500;

let cluster: TestCluster;
beforeAll(async () => {
  // So small that coming back means reading the stream now and then.
  cluster = await startTestCluster(3, { TOPICAST_RING_MESSAGES: '32', TOPICAST_AUDIT_SEC: '3600' });
});
afterAll(() => cluster.stop());

/** All that was stored has come, once and in order, to each. */
async function expectComplete(clients: readonly ResumingClient[], traffic: Traffic): Promise<void> {
  for (const client of clients) {
    await client.signal.until(
      `${client.user} has all`,
      () => [...traffic.sent].every(([topic, sent]) => (client.counts.get(topic) ?? sent) >= sent),
      30_000,
    );
    const owed = new Map([...traffic.sent].filter(([topic]) => client.counts.has(topic)));
    expect(client.counts, `seed ${seed}`).toEqual(owed);
    expect(client.faults, `seed ${seed}`).toEqual([]);
  }
}

/** How many messages the client has still to get of the topic that it is furthest behind with. */
function lagOf(client: ResumingClient, traffic: Traffic): number {
  return Math.max(...[...client.counts].map(([topic, count]) => traffic.sent.get(topic)! - count));
}

describe('clients that move', () => {
  it(`lose nothing from node to node and back while 2,000 messages a second flow, ${rounds} rounds`, async () => {
    const random = seededRandom(seed);
    const topics = Array.from({ length: 10 }, (_, i) => `item.move${i}`);
    const clients = Array.from({ length: 8 }, (_, i) => {
      let at = i;
      return new ResumingClient({
        user: `mover${i}`,
        topics,
        nextPort: () => cluster.nodes[at++ % 2]!.port,
        reconnects: false,
      });
    });
    await Promise.all(clients.map((client) => client.connect()));
    const traffic = new Traffic({ topics, rate: 2000, port: () => cluster.nodes[2]!.port }).start();
    for (let round = 0; round < rounds; round++) {
      const waits = clients.map((client) => {
        const until = client.total + 1 + random.int(400);
        return client.signal.until(
          'some came',
          () => client.total >= until && lagOf(client, traffic) < lagMax,
          30_000,
        );
      });
      await Promise.all(waits);
      for (const client of clients) client.cut();
      await traffic.more(random.int(300));
      await Promise.all(clients.map((client) => client.connect()));
    }
    await traffic.stop();
    await expectComplete(clients, traffic);
    expect(traffic.total).toBeGreaterThan(rounds * 100);
    expect(clients.every((client) => client.connections === rounds + 1)).toBe(true);
    for (const client of clients) client.cut();
  });

  it('lose nothing while all nodes are restarted one after the other', async () => {
    const topics = Array.from({ length: 50 }, (_, i) => `item.roll${i}`);
    const random = seededRandom(seed);
    const living = () => cluster.nodes.map(({ port }) => port);
    const clients = Array.from({ length: 60 }, (_, i) => {
      return new ResumingClient({
        user: `roller${i}`,
        topics: Array.from({ length: 5 }, (_, j) => topics[(i + j * 7) % topics.length]!),
        nextPort: () => random.pick(living()),
        reconnects: true,
      });
    });
    await Promise.all(clients.map((client) => client.connect()));
    const port = () => random.pick(living());
    const traffic = new Traffic({ topics, rate: 500, port, oneByOne: true }).start();
    await traffic.more(200);
    for (const [index, node] of cluster.nodes.entries()) {
      expect(await node.stop()).toBe(0);
      await cluster.startNode(index);
      await traffic.more(200);
    }
    await traffic.stop();
    await expectComplete(clients, traffic);
    const closes = clients.reduce((sum, client) => sum + client.closes, 0);
    console.log(`${traffic.total} messages, ${closes} connections moved, refused by status`, traffic.refused);
    expect(closes).toBeGreaterThanOrEqual(clients.length);
    for (const client of clients) client.cut();
  });

  it('lose nothing when a node is killed', async () => {
    const topics = ['item.crash0', 'item.crash1'];
    const clients = Array.from({ length: 20 }, (_, i) => {
      let at = 0;
      const nextPort = () => cluster.nodes[at++ === 0 ? 0 : 1]!.port;
      return new ResumingClient({ user: `crasher${i}`, topics, nextPort, reconnects: true });
    });
    await Promise.all(clients.map((client) => client.connect()));
    await publishAll(cluster.nodes[2]!.port, [
      ...[0, 1, 2].map((data) => ({ topic: topics[0]!, data })),
      ...[0, 1, 2].map((data) => ({ topic: topics[1]!, data })),
    ]);
    await Promise.all(clients.map((client) => client.signal.until('six came', () => client.total === 6)));
    await cluster.nodes[0]!.kill();
    await publishAll(
      cluster.nodes[2]!.port,
      [3, 4, 5].map((data) => ({ topic: topics[0]!, data })),
    );
    await Promise.all(clients.map((client) => client.signal.until('nine came', () => client.total === 9)));
    expect(clients.flatMap((client) => client.faults)).toEqual([]);
    for (const client of clients) client.cut();
    await cluster.startNode(0);
  });
});
