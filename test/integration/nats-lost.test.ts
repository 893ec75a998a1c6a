import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { freshPrefix, startTestNode, type TestNode } from '../support/nats-bus.js';
import { startNatsProxy, type NatsProxy } from '../support/proxy.js';
import { startNats, type NatsServers } from '../support/servers/nats-kit.js';

let servers: NatsServers;
let proxy: NatsProxy;
let node: TestNode;
let publisher: TestNode;

beforeAll(async () => {
  servers = await startNats();
});
afterAll(() => servers.stop());

beforeEach(async () => {
  proxy = await startNatsProxy(servers.urls[0]!);
  const prefix = freshPrefix();
  node = await startTestNode({ servers: [proxy.url], prefix, auditSec: 1 });
  publisher = await startTestNode({ servers: servers.urls, prefix });
});
afterEach(async () => {
  await Promise.all([node.stop(), publisher.stop()]);
  await proxy.close();
});

const isOut = (subject: string): boolean => subject.includes('.out.');
const isFollowed = (subject: string): boolean => /\.in\.item/.test(subject);

const ways = [
  { name: 'a topic', filters: ['item.1'], isLost: isOut },
  { name: 'a pattern', filters: ['item.*'], isLost: isFollowed },
  { name: 'a group of patterns', filters: ['item.*', 'item.1.>'], isLost: isFollowed },
];

for (const { filters, isLost, name } of ways) {
  it(`repairs what was lost on the way in the middle of ${name}`, async () => {
    const hosted = await node.host(...filters);
    await publisher.store('item.1', 1);
    await node.signal.until('the first', () => hosted.texts.length === 1);
    proxy.drop = isLost;
    await publisher.store('item.1', 2);
    await publisher.store('item.1', 3);
    await node.signal.until('the first', () => hosted.texts.length >= 1);
    await expect.poll(() => proxy.dropped, { timeout: 10_000 }).toBeGreaterThanOrEqual(2);
    proxy.drop = () => false;
    const since = performance.now();
    await publisher.store('item.1', 4);
    await node.signal.until('all', () => hosted.texts.length >= 4);
    console.log(
      `${name}, middle: repaired ${Math.round(performance.now() - since)} ms after the next message`,
    );
    expect(hosted.texts).toEqual(['1', '2', '3', '4']);
    expect(hosted.gaps).toEqual([]);
  });

  it(`repairs the last message of ${name} by the audit or the heartbeat`, async () => {
    const hosted = await node.host(...filters);
    await publisher.store('item.1', 1);
    await node.signal.until('the first', () => hosted.texts.length === 1);
    proxy.drop = (subject) => isLost(subject) && proxy.dropped < 1;
    const since = performance.now();
    await publisher.store('item.1', 2);
    await node.signal.until('the last', () => hosted.texts.length >= 2);
    console.log(
      `${name}, tail: repaired in ${Math.round(performance.now() - since)} ms with an audit each second`,
    );
    expect(proxy.dropped).toBe(1);
    expect(hosted.texts).toEqual(['1', '2']);
    expect(hosted.gaps).toEqual([]);
  });
}

it('has everything that was stored while its connection was away, soon after it is back', async () => {
  const exact = await node.host('item.1');
  const pattern = await node.host('item.>');
  const quiet = await node.host('item.2');
  await publisher.store('item.1', 0);
  await node.signal.until('the first', () => exact.texts.length === 1 && pattern.texts.length === 1);
  proxy.cut();
  await node.signal.until('the loss', () => !node.bus.connected);
  await expect(node.store('item.1', 'refused')).rejects.toMatchObject({ code: 'unavailable' });
  for (let i = 1; i <= 50; i++) await publisher.store('item.1', i);
  await publisher.store('item.2', 'tail');
  proxy.restore();
  await expect.poll(() => node.bus.connected, { timeout: 10_000 }).toBe(true);
  const since = performance.now();
  await node.signal.until(
    'all',
    () => exact.texts.length >= 51 && pattern.texts.length >= 52 && quiet.texts.length >= 1,
  );
  console.log(`52 messages missed: there ${Math.round(performance.now() - since)} ms after the connection`);
  const numbers = Array.from({ length: 51 }, (_, i) => String(i));
  expect(exact.texts).toEqual(numbers);
  expect(pattern.texts).toEqual([...numbers, '"tail"']);
  expect(quiet.texts).toEqual(['"tail"']);
});

it('holds what it hosts and no more, also after the connection was lost', async () => {
  const subscriptions = (): number => {
    const { nc } = node.link;
    return (
      nc as unknown as { protocol: { subscriptions: { size(): number } } }
    ).protocol.subscriptions.size();
  };
  await node.host('item.0');
  const before = subscriptions();
  for (let i = 1; i <= 5; i++) await node.host(`item.${i}`);
  await node.host('item.*.x');
  expect(subscriptions() - before).toBe(6);
  await node.bus.history(['item.0'], 0, 10);
  proxy.cut();
  await node.signal.until('the loss', () => !node.bus.connected);
  proxy.restore();
  await expect.poll(() => node.bus.connected, { timeout: 10_000 }).toBe(true);
  await publisher.store('item.1.x', 1);
  await expect.poll(subscriptions, { timeout: 10_000 }).toBe(before + 6);
});
