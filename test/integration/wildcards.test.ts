import { beforeAll, describe, expect, test } from 'vitest';
import type { Codec } from '../../protocol/mod.js';
import { codecs, connect, type TestClient } from '../support/client.js';
import { startNode, type NodeProcess } from '../support/node-process.js';
import { seededRandom } from '../support/random.js';
import { untilEmpty } from '../support/scrape.js';
import { numbered, Publisher, unhurried } from '../support/stream.js';

let node: NodeProcess;
beforeAll(async () => {
  node = await startNode({ ...unhurried, TOPICAST_LINGER_MS: '0', TOPICAST_RING_MESSAGES: '16' });
});

const variants = codecs.flatMap((codec) =>
  (['item', 'news'] as const).map((namespace) => [codec.name, namespace, codec] as const),
);

describe.each(variants)('overlapping subscriptions of one %s connection to %s', (_name, namespace, codec) => {
  const topics = ['a.x', 'a.y', 'b.x', 'b.y', 'a.x.z'].map((rest) => `${namespace}.${rest}`);

  test('get each message once', async () => {
    const publisher = await Publisher.connect(node.port, codec);
    const filters = [`${namespace}.a.*`, `${namespace}.*.x`, `${namespace}.a.x`];
    const reader = await connect({ port: node.port, codec, topics: filters });
    await reader.until('all are told', () => told(reader) === 3);
    await publisher.burst(topics, 500);
    const matching = topics.filter((topic) => /\.(a\.x|a\.y|b\.x)$/.test(topic));
    const expected = matching.flatMap((topic) => publisher.after(topic, -1));
    await reader.until('everything', () => reader.messages.length >= expected.length);
    await reader.ping();
    expect(byNumber(reader.messages.map(numbered))).toEqual(byNumber(expected));
    for (const topic of matching) {
      const got = reader.messages.filter((message) => message.topic === topic).map(numbered);
      expect(got).toEqual(publisher.after(topic, -1));
    }
    if (namespace === 'item') {
      const offsets = reader.messages.map((message) => message.offset);
      expect(offsets).toEqual([...offsets].sort((a, b) => a! - b!));
    }
    await reader.close();
    await publisher.client.close();
  });
});

describe.each(codecs.map((codec) => [codec.name, codec] as const))(
  'a %s connection whose subscriptions change',
  (name, codec) => {
    test('while messages flow neither loses nor doubles a durable one', async () => {
      const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 0xffff_ffff));
      try {
        await changeWhileFlowing(codec, seed);
      } catch (cause) {
        throw new Error(`SEED=${seed} (${name})`, { cause });
      }
    });

    test('leaves nothing behind', async () => {
      await untilEmpty(node.port);
    });
  },
);

/** `item.a.x` is always held, by itself or by a pattern; what else is held comes and goes. */
async function changeWhileFlowing(codec: Codec, seed: number): Promise<void> {
  const random = seededRandom(seed);
  const publisher = await Publisher.connect(node.port, codec);
  const reader = await connect({ port: node.port, codec, topics: ['item.a.x'] });
  await reader.frame('subscribed');
  const others = ['item.a.*', 'item.*.x', 'item.>', 'item.b.x', 'item.a.>'];
  const held = new Set<string>();
  for (let step = 0; step < 120; step++) {
    const publishing = publisher.burst(['item.a.x', 'item.b.x', 'item.a.y'], 30);
    for (let changes = random.int(3); changes >= 0; changes--) {
      const filter = random.pick(others);
      if (held.delete(filter)) reader.send({ type: 'unsubscribe', topics: [filter] });
      else {
        held.add(filter);
        reader.send({ type: 'subscribe', topics: [{ topic: filter }] });
      }
    }
    await publishing;
  }
  const expected = publisher.after('item.a.x');
  const last = expected[expected.length - 1]!;
  await reader.frame('msg', (message) => message.offset === last.offset);
  await reader.ping();
  const got = reader.messages.filter((message) => message.topic === 'item.a.x').map(numbered);
  expect(got).toEqual(expected);
  for (const topic of ['item.b.x', 'item.a.y']) {
    const offsets = reader.messages.filter((message) => message.topic === topic).map((m) => m.offset!);
    expect(offsets).toEqual([...new Set(offsets)].sort((a, b) => a - b));
  }
  expect(reader.ofType('gap')).toEqual([]);
  await reader.close();
  await publisher.client.close();
}

function told(client: TestClient): number {
  return client.ofType('subscribed').flatMap((frame) => frame.topics).length;
}

function byNumber(messages: readonly { n: number; offset: number }[]) {
  return [...messages].sort((a, b) => a.n - b.n);
}
