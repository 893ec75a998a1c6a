import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { closeCodes } from '../../protocol/mod.js';
import { codecs, connect, type TestClient } from '../support/client.js';
import { startNode, type NodeProcess } from '../support/node-process.js';
import { scrape } from '../support/scrape.js';
import { eventually } from '../support/signal.js';
import { numbered, Publisher, unhurried } from '../support/stream.js';

const mib = 1024 * 1024;
/** Far more than the kernel keeps for one connection of this machine to itself. */
const count = 800;
const filler = 'f'.repeat(40 * 1024);
const volume = count * filler.length;
const topic = 'item.flood';

describe.each(codecs.map((codec) => [codec.name, codec] as const))(
  '%s clients that stop reading',
  (_name, codec) => {
    test('cost nobody else anything, and have everything once when they read again', async () => {
      const node = await startNode(unhurried);
      const { port } = node;
      const quick = await connect({ port, codec, topics: [topic] });
      const slow = await Promise.all(
        Array.from({ length: 8 }, () => connect({ port, codec, topics: [topic] })),
      );
      for (const client of [quick, ...slow]) await client.frame('subscribed');
      const publisher = await Publisher.connect(port, codec);
      await publisher.burst([topic], 3);
      for (const client of slow) {
        await client.until('the first ones', () => client.messages.length === 3);
        client.socket.pause();
      }
      const before = memoryOf(node);
      await flood(publisher, quick);
      // Nobody has read again yet.
      expect(quick.messages.map(numbered)).toEqual(publisher.after(topic));
      expect(quick.ofType('resync')).toEqual([]);
      expect(await scrape(port, 'resyncs_total')).toEqual([slow.length]);
      // The store, what is under way, and a buffer for each slow reader; not a copy of everything for each.
      expect(memoryOf(node) - before).toBeLessThan(2.5 * volume + slow.length * 2 * mib + 64 * mib);

      for (const client of slow) client.socket.resume();
      const resumed = slow.map((client) => resumeAfterResync(client));
      await publisher.burst([topic], 50);
      await Promise.all(resumed);
      const last = publisher.after(topic).at(-1)!;
      for (const client of slow) {
        await client.frame('msg', (message) => message.offset === last.offset);
        expect(client.messages.map(numbered)).toEqual(publisher.after(topic));
        expect(client.ofType('gap')).toEqual([]);
        await client.cut();
      }
      await quick.close();
      await publisher.client.close();
      await node.stop();
    });
  },
);

test('a client that does not read for slowSec is closed, and its socket is gone although it never reads again', async () => {
  const node = await startNode({ ...unhurried, TOPICAST_SLOW_SEC: '1' });
  const [codec] = codecs;
  const publisher = await Publisher.connect(node.port, codec);
  const quick = await connect({ port: node.port, codec, topics: [topic] });
  await quick.frame('subscribed');
  const sockets = socketsOf(node);
  const slow = await connect({ port: node.port, codec, topics: [topic] });
  await slow.frame('subscribed');
  slow.socket.pause();
  await flood(publisher, quick);
  await eventually('the slow one is closed', async () => {
    const [closed, connections] = await scrape(node.port, 'slow_closes_total', 'connections');
    return closed === 1 && connections === 2;
  });
  // The reader is given some seconds to read its close.
  await eventually('its socket is gone', async () => socketsOf(node) <= sockets, 40_000);
  slow.socket.resume();
  expect([closeCodes.slowConsumer, 1006]).toContain((await slow.ended()).code);
  expect(quick.end).toBeUndefined();
  expect(quick.messages.map(numbered)).toEqual(publisher.after(topic));
  await quick.close();
  await publisher.client.close();
  await node.stop();
});

/** No faster than one client reads, so that it is the others who are slow. */
async function flood(publisher: Publisher, quick: TestClient): Promise<void> {
  for (let i = 0; i < count; i += 10) {
    await publisher.burst([topic], 10, filler);
    const { offset } = publisher.after(topic).at(-1)!;
    await quick.until('it has all so far', () => quick.messages.at(-1)?.offset === offset);
  }
}

async function resumeAfterResync(client: TestClient): Promise<void> {
  const resync = await client.frame('resync');
  expect(resync.topics).toEqual([topic]);
  const place = client.ofType('subscribed')[0]?.topics[0];
  if (place === undefined || !('epoch' in place)) throw new Error('no position');
  const offset = client.messages.at(-1)?.offset ?? place.offset;
  const told = await client.ask('subscribed', {
    type: 'subscribe',
    topics: [{ topic, epoch: place.epoch, offset }],
  });
  expect(told.topics).toMatchObject([{ topic, offset, recovered: true }]);
}

function memoryOf({ pid }: NodeProcess): number {
  const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(line?.[1]) * 1024;
}

function socketsOf({ pid }: NodeProcess): number {
  return readdirSync(`/proc/${pid}/fd`).filter((fd) => isSocket(`/proc/${pid}/fd/${fd}`)).length;
}

function isSocket(path: string): boolean {
  try {
    return readlinkSync(path).startsWith('socket:');
  } catch (error) {
    // It was closed since the folder was read.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}
