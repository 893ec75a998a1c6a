import { connect as connectTcp, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { Inspector, inspectorEnv, type MemoryUse } from '../support/inspector.js';
import { startNode } from '../support/node-process.js';
import { untilEmpty } from '../support/scrape.js';

const mib = 1024 * 1024;
const rounds = 5;
const perRound = 10_000;
/** At once: sockets of a process are limited. */
const batch = 2_500;
/**
 * From the second round on, when caches have filled, three rounds add 30,000 connections: what a connection may leave behind
 * is below 70 bytes of the heap. The allocator keeps pages as it likes, so all of the process is held to less.
 */
const heapSlack = 2 * mib;
const rssSlack = 24 * mib;

test('connections that come and go leave nothing behind', async () => {
  const node = await startNode({
    ...inspectorEnv,
    TOPICAST_CONNECT_RATE: '1000000',
    TOPICAST_LINGER_MS: '50',
  });
  const inspector = await Inspector.attach(node);
  const uses: MemoryUse[] = [];
  for (let round = 0; round < rounds; round++) {
    for (let from = 0; from < perRound; from += batch) {
      const sockets = await Promise.all(
        Array.from({ length: batch }, (_, i) => subscribe(node.port, from + i)),
      );
      for (const [i, socket] of sockets.entries()) {
        // Half of them leave in order, half as on a lost line.
        if (i % 2 === 0) socket.end(closeFrame);
        else socket.resetAndDestroy();
      }
      await untilEmpty(node.port);
      for (const socket of sockets) socket.destroy();
    }
    const online = await fetch(`${node.url}/v1/online`);
    expect(await online.json()).toEqual({ users: 0, connections: 0 });
    uses.push(await inspector.measure());
  }
  const shown = uses.map(({ heap, rss }) => `${Math.round(heap / 1024)}/${Math.round(rss / 1024)}`).join(' ');
  const [, second, ...later] = uses;
  expect(median(later.map((use) => use.heap)) - second!.heap, `heap/RSS in KiB: ${shown}`).toBeLessThan(
    heapSlack,
  );
  expect(median(later.map((use) => use.rss)) - second!.rss, `heap/RSS in KiB: ${shown}`).toBeLessThan(
    rssSlack,
  );
  expect(node.stderr).not.toContain('unexpected fault');
  inspector.close();
  await node.stop();
});

/** An empty close frame, masked with zeros. */
const closeFrame = Buffer.from([0x88, 0x80, 0, 0, 0, 0]);

/** A connection with a topic of its own of either kind, once both are told. */
function subscribe(port: number, i: number): Promise<Socket> {
  const topics = [`item.m${i}`, `news.m${i}`];
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connectTcp(port, '127.0.0.1', () => {
      socket.write(
        `GET /v1/connect?user=u${i}&topics=${topics.join(',')} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\n` +
          'Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
      );
    });
    const failed = (error?: Error): void => reject(error ?? new Error(`ended after: ${text}`));
    socket.on('error', failed);
    socket.on('close', () => failed());
    socket.setEncoding('latin1').on('data', (more: string) => {
      text += more;
      if (topics.every((topic) => text.includes(`"topic":"${topic}"`))) resolve(socket);
    });
  });
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}
