import { beforeAll, describe, expect, test } from 'vitest';
import type { Codec } from '../../protocol/mod.js';
import { codecs, connect, TestClient, type FrameOf } from '../support/client.js';
import { startNode, type NodeProcess } from '../support/node-process.js';
import { seededRandom } from '../support/random.js';
import { numbered, Publisher, unhurried } from '../support/stream.js';

let roomy: NodeProcess;
let tight: NodeProcess;
beforeAll(async () => {
  const namespaces = JSON.stringify({ short: { delivery: 'durable', historyMax: 10 } });
  const env = { ...unhurried, TOPICAST_NAMESPACES: namespaces, TOPICAST_LINGER_MS: '0' };
  roomy = await startNode(env);
  tight = await startNode({ ...env, TOPICAST_RING_MESSAGES: '4' });
});

const variants = codecs.flatMap((codec) => [
  [codec.name, 'the usual ring', codec, () => roomy] as const,
  [codec.name, 'a ring of four', codec, () => tight] as const,
]);

describe.each(variants)('a %s reader with %s', (name, ring, codec, node) => {
  test.each(['item.resume', 'item.*'])(
    'that is cut at random moments gets each message of %s once, in order',
    async (filter) => {
      const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 0xffff_ffff));
      try {
        await readWithCuts(node().port, codec, filter, seed);
      } catch (cause) {
        throw new Error(`SEED=${seed} (${name}, ${ring})`, { cause });
      }
    },
  );

  test('gets a snapshot of the last ones and goes on live without a seam', async () => {
    const { port } = node();
    const publisher = await Publisher.connect(port, codec);
    await publisher.burst(['item.snapshot'], 40);
    for (let round = 0; round < 20; round++) {
      const reader = await connect({ port, codec });
      reader.send({ type: 'subscribe', req: 1, topics: [{ topic: 'item.snapshot', last: 7 }] });
      await publisher.burst(['item.snapshot'], 25);
      const all = publisher.after('item.snapshot');
      const last = all[all.length - 1]!;
      await reader.frame('msg', (message) => message.offset === last.offset);
      const place = placeOf(await reader.frame('subscribed'), 'item.snapshot');
      const got = reader.messages.map(numbered);
      expect(got).toEqual(publisher.after('item.snapshot', place.offset));
      expect(got.length).toBeGreaterThanOrEqual(7);
      await reader.cut();
    }
    const quiet = await connect({ port, codec });
    quiet.send({ type: 'subscribe', req: 1, topics: [{ topic: 'item.snapshot', last: 7 }] });
    await quiet.until('seven messages', () => quiet.messages.length >= 7);
    await quiet.ping();
    expect(quiet.messages.map(numbered)).toEqual(publisher.after('item.snapshot').slice(-7));
    await quiet.close();
    await publisher.client.close();
  });

  test('gets none of what is stored with the last 0', async () => {
    const { port } = node();
    const publisher = await Publisher.connect(port, codec);
    await publisher.burst(['item.none'], 5);
    const reader = await connect({ port, codec });
    reader.send({ type: 'subscribe', req: 1, topics: [{ topic: 'item.none', last: 0 }] });
    const place = placeOf(await reader.frame('subscribed'), 'item.none');
    expect(publisher.after('item.none', place.offset)).toEqual([]);
    await publisher.burst(['item.none'], 1);
    await reader.until('what is new', () => reader.messages.length > 0);
    await reader.ping();
    expect(reader.messages.map(numbered)).toEqual(publisher.after('item.none').slice(-1));
    await reader.close();
    await publisher.client.close();
  });

  test('resumes by a frame as by the handshake', async () => {
    const { port } = node();
    const publisher = await Publisher.connect(port, codec);
    await publisher.burst(['item.frame'], 30);
    const { epoch } = await headOf(port, codec, 'item.frame');
    const all = publisher.after('item.frame');
    const reader = await connect({ port, codec });
    const { offset } = all[9]!;
    reader.send({ type: 'subscribe', req: 5, topics: [{ topic: 'item.frame', epoch, offset }] });
    const told = await reader.frame('subscribed');
    expect(told).toMatchObject({ req: 5, topics: [{ topic: 'item.frame', epoch, offset, recovered: true }] });
    await reader.until('what is missing', () => reader.messages.length >= 20);
    await reader.ping();
    expect(reader.messages.map(numbered)).toEqual(all.slice(10));
    await reader.close();
    await publisher.client.close();
  });

  test('is told when its position cannot be recovered, and starts at the head', async () => {
    const { port } = node();
    const publisher = await Publisher.connect(port, codec);
    await publisher.burst(['short.a'], 30);
    const all = publisher.after('short.a');
    const head = await headOf(port, codec, 'short.a');
    expect(head.offset).toBe(all[29]!.offset);
    const ask = async (position: string) => {
      const reader = await connect({ port, codec, topics: [`short.a@${position}`] });
      const place = placeOf(await reader.frame('subscribed'), 'short.a');
      await reader.ping();
      const got = reader.messages.map(numbered);
      await reader.close();
      return { ...place, got };
    };
    const lost = { topic: 'short.a', epoch: head.epoch, offset: head.offset, recovered: false, got: [] };
    expect(await ask(`other:${all[29]!.offset}`)).toEqual(lost);
    expect(await ask(`${head.epoch}:${head.offset + 1}`)).toEqual(lost);
    expect(await ask(`${head.epoch}:9007199254740991`)).toEqual(lost);
    // Ten are stored; after the one before them nothing is missing.
    const edge = all[19]!.offset;
    expect(await ask(`${head.epoch}:${edge}`)).toEqual({
      ...lost,
      offset: edge,
      recovered: true,
      got: all.slice(20),
    });
    expect(await ask(`${head.epoch}:${all[18]!.offset}`)).toEqual(lost);
    await publisher.client.close();
  });

  test('of a quiet topic is recovered however far its namespace has moved on', async () => {
    const { port } = node();
    const publisher = await Publisher.connect(port, codec);
    await publisher.burst(['short.quiet'], 3);
    const reader = await connect({ port, codec, topics: ['short.quiet'] });
    const place = placeOf(await reader.frame('subscribed'), 'short.quiet');
    await publisher.burst(['short.loud', 'short.louder'], 60);
    const floor = (await reader.ping()).floors?.['short'] ?? '';
    await reader.cut();
    expect(floor).toMatch(new RegExp(`^${place.epoch}:\\d+$`));
    for (const position of [`${place.epoch}:${place.offset}`, floor]) {
      const again = await connect({ port, codec, topics: [`short.quiet@${position}`] });
      const [told] = (await again.frame('subscribed')).topics;
      expect(told).toMatchObject({ recovered: true, offset: Number(position.split(':')[1]) });
      await publisher.burst(['short.quiet'], 1);
      const all = publisher.after('short.quiet');
      await again.frame('msg', (message) => message.offset === all[all.length - 1]!.offset);
      expect(again.messages.map(numbered)).toEqual(
        publisher.after('short.quiet', Number(position.split(':')[1])),
      );
      await again.cut();
    }
    await publisher.client.close();
  });
});

const cuts = 25;

/** Publishes in bursts while a reader is cut again and again and comes back with its last position. */
async function readWithCuts(port: number, codec: Codec, filter: string, seed: number): Promise<void> {
  const random = seededRandom(seed);
  const topics = filter === 'item.*' ? ['item.ra', 'item.rb', 'item.rc'] : [filter];
  const publisher = await Publisher.connect(port, codec);
  const start = await headOf(port, codec, filter);
  let position = `${start.epoch}:${start.offset}`;
  const got: { n: number; offset: number }[] = [];
  for (let cut = 0; cut <= cuts; cut++) {
    const reader = new TestClient({ port, codec, topics: [`${filter}@${position}`] });
    // Some are published before it is there, some while it replays, some when it is live.
    const publishing = publisher.burst(topics, 50 + random.int(150));
    const wanted = cut === cuts ? Infinity : random.int(120);
    if (cut === cuts) {
      await publishing;
      const last = Math.max(...topics.map((topic) => publisher.after(topic).at(-1)?.offset ?? 0));
      await reader.frame('msg', (message) => message.offset === last);
    } else {
      await reader.until('some messages', () => reader.messages.length >= Math.min(wanted, 40));
    }
    await reader.cut();
    expect(reader.faults).toEqual([]);
    expect(reader.ofType('gap')).toEqual([]);
    const [place] = reader.ofType('subscribed').flatMap((frame) => frame.topics);
    if (place !== undefined) expect(place).toMatchObject({ recovered: true });
    for (const message of reader.messages) {
      got.push(numbered(message));
      position = `${start.epoch}:${message.offset ?? 0}`;
      if (filter === 'item.*') expect(message.pattern).toBe(filter);
    }
    await publishing;
  }
  const expected = topics.flatMap((topic) => publisher.after(topic)).sort((a, b) => a.offset - b.offset);
  expect(got).toEqual(expected);
  expect(got.length).toBeGreaterThan(1000);
  await publisher.client.close();
}

type Place = { topic: string; epoch: string; offset: number; recovered: boolean };

function placeOf(frame: FrameOf<'subscribed'>, topic: string): Place {
  const place = frame.topics.find((entry) => entry.topic === topic);
  if (place === undefined || !('epoch' in place)) throw new Error(`no position: ${JSON.stringify(frame)}`);
  return place;
}

async function headOf(port: number, codec: Codec, topic: string): Promise<Place> {
  const client = await connect({ port, codec, topics: [topic] });
  const place = placeOf(await client.frame('subscribed'), topic);
  await client.close();
  return place;
}
