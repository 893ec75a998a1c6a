import { encode } from 'msgpackr';
import { connect, headers as createHeaders, type NatsConnection } from 'nats';
import { createConnection } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createNamespaces, defaultNamespace } from '../../broker/namespaces.js';
import { freshPrefix, item, startTestNode, type Hosted, type TestNode } from '../support/nats-bus.js';
import { natsServers } from '../support/servers/binaries.js';
import { startNats, type NatsServers } from '../support/servers/nats-kit.js';

const namespaces = createNamespaces({ item, news: defaultNamespace });
const deep = '['.repeat(65) + ']'.repeat(65);
const msgpack = (): ReturnType<typeof createHeaders> => {
  const made = createHeaders();
  made.set('Content-Type', 'application/msgpack');
  return made;
};

describe.each(natsServers())('what other programs publish, nats-server $version', ({ version }) => {
  let servers: NatsServers;
  let foreign: NatsConnection;
  let node: TestNode;
  let prefix: string;
  let exact: Hosted;
  let pattern: Hosted;

  beforeAll(async () => {
    servers = await startNats({ version });
    foreign = await connect({ servers: [...servers.urls] });
  });
  afterAll(async () => {
    await foreign.close();
    await servers.stop();
  });
  beforeEach(async () => {
    prefix = freshPrefix();
    node = await startTestNode({ servers: servers.urls, prefix, namespaces, auditSec: 1 });
    return () => node.stop();
  });

  /** A message with a header block as the client would not make it. */
  async function publishRaw(subject: string, head: string, body: string): Promise<void> {
    const port = Number(new URL(servers.urls[0]!).port);
    const block = `NATS/1.0\r\n${head}\r\n\r\n`;
    const socket = createConnection(port, '127.0.0.1');
    socket.write('CONNECT {"verbose":false,"headers":true}\r\n');
    socket.write(
      `HPUB ${subject} ${block.length} ${block.length + body.length}\r\n${block}${body}\r\nPING\r\n`,
    );
    let text = '';
    for await (const bytes of socket) {
      text += String(bytes);
      if (text.includes('PONG')) break;
    }
    socket.destroy();
    expect(text).not.toContain('-ERR');
  }

  async function expectStillWell(topic: string, dropped: number): Promise<void> {
    const subject = `${prefix}.${topic.startsWith('item') ? 'in' : 'live'}.${topic}`;
    foreign.publish(subject, '{"good":1}');
    foreign.publish(subject, encode({ good: 2 }), { headers: msgpack() });
    await node.signal.until('the good ones', () => exact.texts.length === 2 && pattern.texts.length === 2);
    expect(exact.texts).toEqual(['{"good":1}', 'bytes']);
    expect(exact.gaps).toEqual([]);
    expect(pattern.gaps).toEqual([]);
    // Once for the topic and once for the pattern.
    expect(node.counters.bodiesDropped).toBe(2 * dropped);
    expect(node.bus.connected).toBe(true);
  }

  for (const topic of ['item.1', 'news.1']) {
    it(`drops and counts bodies that cannot be read, and goes on: ${topic}`, async () => {
      [exact, pattern] = await Promise.all([node.host(topic), node.host(`${topic.slice(0, -1)}*`)]);
      const subject = `${prefix}.${topic.startsWith('item') ? 'in' : 'live'}.${topic}`;
      foreign.publish(subject, 'no json');
      foreign.publish(subject, '');
      foreign.publish(subject, Uint8Array.of(0x22, 0xff, 0x22));
      foreign.publish(subject, deep);
      foreign.publish(subject, Uint8Array.of(0xdc, 0xff), { headers: msgpack() });
      foreign.publish(subject, Uint8Array.of(0xc1), { headers: msgpack() });
      await foreign.flush();
      await expectStillWell(topic, 6);
      if (topic === 'news.1') return;
      const floor = node.bus.floor('item')!.offset;
      await expect.poll(() => node.bus.floor('item')!.offset, { timeout: 10_000 }).toBeGreaterThan(floor);
      // Nothing is taken for lost: no repair ran.
      expect(node.counters).toMatchObject({ gapsRepaired: 0, gapsLost: 0 });
      expect(exact.channel.feed?.repairing).toBe(false);
    });

    it(`survives header names that are none: ${topic}`, async () => {
      [exact, pattern] = await Promise.all([node.host(topic), node.host(`${topic.slice(0, -1)}*`)]);
      const subject = `${prefix}.${topic.startsWith('item') ? 'in' : 'live'}.${topic}`;
      await publishRaw(subject, 'b@d na(me: x', '');
      await publishRaw(subject, 'b@d na(me: x', '"unseen"');
      await expectStillWell(topic, 2);
    });
  }

  it('does not believe a place that the publisher wrote into the headers', async () => {
    [exact, pattern] = await Promise.all([node.host('item.1'), node.host('item.*')]);
    const forged = createHeaders();
    forged.set('Nats-Sequence', '1000000');
    forged.set('Nats-Last-Sequence', '999999');
    forged.set('Nats-Stream', 'another');
    foreign.publish(`${prefix}.in.item.1`, '1', { headers: forged });
    foreign.publish(`${prefix}.in.item.1`, '2');
    await node.signal.until('both', () => exact.texts.length === 2 && pattern.texts.length === 2);
    expect(exact.offsets).toEqual([1, 2]);
    expect(pattern.offsets).toEqual([1, 2]);
    expect(exact.channel.feed?.last).toBe(2);
  });

  it('does not take a stored message for a heartbeat of the consumer', async () => {
    [exact, pattern] = await Promise.all([node.host('item.1'), node.host('item.*')]);
    await publishRaw(`${prefix}.in.item.1`, 'Nats-Last-Consumer: 7\r\nNats-Consumer-Stalled: x', '');
    foreign.publish(`${prefix}.in.item.1`, '1');
    await node.signal.until('it', () => exact.texts.length === 1 && pattern.texts.length === 1);
    expect(node.faults).toEqual([]);
  });
});
