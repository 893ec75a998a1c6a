import type { NatsConnection } from 'nats';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect, valueOf } from '../support/client.js';
import { callApi, publishAll, startTestCluster, type TestCluster } from '../support/cluster.js';
import { seededRandom } from '../support/random.js';
import { signToken } from '../support/tokens.js';

const topics = Array.from({ length: 20 }, (_, i) => `item.cold${i}`);
const perTopic = 100;
const clientCount = 2000;
const seed = 7;

let cluster: TestCluster;
let watcher: NatsConnection;
/** Requests to JetStream, by what they ask. */
const asked = new Map<string, number>();

beforeAll(async () => {
  // Of a hundred messages the nodes remember eight, so those who come back have to be served from the stream.
  cluster = await startTestCluster(2, { TOPICAST_RING_MESSAGES: '8', TOPICAST_AUDIT_SEC: '3600' });
  watcher = await cluster.watchNats();
  watcher.subscribe('$JS.API.>', {
    callback: (_error, { subject }) => {
      const kind = subject.split('.').slice(2, 4).join('.');
      asked.set(kind, (asked.get(kind) ?? 0) + 1);
    },
  });
  await watcher.flush();
});
afterAll(() => cluster.stop());

/** ms that single publishes take, one after the other, until `ended`. */
async function publishTimes(ended: () => boolean): Promise<number[]> {
  const times: number[] = [];
  while (!ended()) {
    const start = performance.now();
    await callApi(cluster.nodes[0]!.port, 'POST', '/v1/topics/coupon.other/messages', 1);
    times.push(performance.now() - start);
  }
  return times.sort((a, b) => a - b);
}

function summary(times: readonly number[]): string {
  const at = (share: number) => (times[Math.floor(share * (times.length - 1))] ?? 0).toFixed(1);
  return `median ${at(0.5)} ms, p99 ${at(0.99)} ms, of ${times.length}`;
}

describe('2,000 clients that come back at once', () => {
  it('cost at most two reads of the stream for each topic and node', async () => {
    const hold = await Promise.all(
      cluster.nodes.map(async ({ port }) => {
        const client = await connect({
          port,
          token: await signToken({ sub: 'hold', can: { sub: ['>'] } }),
          topics,
        });
        await client.until(
          'subscribed',
          () => client.ofType('subscribed').flatMap((f) => f.topics).length >= 20,
        );
        return client;
      }),
    );
    const [first] = hold[0]!.ofType('subscribed').flatMap((frame) => frame.topics);
    const epoch = first !== undefined && 'epoch' in first ? first.epoch : '';
    const offsets = new Map<string, number[]>(topics.map((topic) => [topic, []]));
    await publishAll(
      cluster.nodes[0]!.port,
      Array.from({ length: perTopic * topics.length }, (_, n) => ({
        topic: topics[n % 20]!,
        data: Math.floor(n / 20),
      })),
    );
    for (const client of hold) {
      await client.until('all came', () => client.messages.length >= perTopic * topics.length);
    }
    for (const { offset, topic } of hold[0]!.messages) offsets.get(topic)!.push(offset!);

    let count = 0;
    const quiet = await publishTimes(() => ++count > 200);
    const random = seededRandom(seed);
    const tokens = await Promise.all(
      Array.from({ length: clientCount }, (_, i) => signToken({ sub: `c${i}`, can: { sub: ['>'] } })),
    );
    asked.clear();
    let back = 0;
    const storm = tokens.map(async (token, i) => {
      const topic = topics[i % topics.length]!;
      const after = random.int(perTopic - 10);
      const client = await connect({
        port: cluster.nodes[(i >> 5) % 2]!.port,
        token,
        topics: [`${topic}@${epoch}:${offsets.get(topic)![after]!}`],
      });
      const missed = perTopic - 1 - after;
      await client.until('what was missed', () => client.messages.length >= missed);
      back++;
      expect(client.messages.map(({ data }) => valueOf(data))).toEqual(
        Array.from({ length: missed }, (_, n) => after + 1 + n),
      );
      return client;
    });
    const [busy, clients] = await Promise.all([publishTimes(() => back === clientCount), Promise.all(storm)]);
    // This process holds the 2,000 clients too, and has little time for the one that publishes.
    console.log('publishing elsewhere: quiet', summary(quiet), '· meanwhile', summary(busy));
    console.log('asked of JetStream', Object.fromEntries(asked), `for ${topics.length} topics on 2 nodes`);
    const total = [...asked.values()].reduce((sum, n) => sum + n, 0);
    expect(total).toBeLessThanOrEqual(2 * topics.length * 2);
    for (const client of [...clients, ...hold]) client.socket.terminate();
  });
});
