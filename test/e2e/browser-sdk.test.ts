import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { jsonCodec } from '../../protocol/mod.js';
import { freePort, startNode, type NodeProcess } from '../support/node-process.js';
import { seededRandom } from '../support/random.js';
import { SdkPage } from '../support/sdk-page.js';
import { eventually } from '../support/signal.js';
import { Publisher, unhurried } from '../support/stream.js';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.js';
import { apiKey, authEnv, signToken } from '../support/tokens.js';

const env = { ...unhurried, TOPICAST_LOG_LEVEL: 'error', TOPICAST_ALLOWED_ORIGINS: '*' };
let node: NodeProcess;
let publisher: Publisher;
beforeAll(async () => {
  node = await startNode(env);
  publisher = await Publisher.connect(node.port, jsonCodec);
});

const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function openSdk(port: number): Promise<SdkPage> {
  const sdk = await SdkPage.open(port);
  ends.push(() => sdk.close());
  return sdk;
}

async function openLine(): Promise<TcpProxy> {
  const line = await startTcpProxy(node.port);
  ends.push(() => line.close());
  return line;
}

/** What a reader of a topic from its beginning gets. */
const sent = (topic: string): number[] => publisher.after(topic).map(({ n }) => n);

describe.each(['json', 'msgpack'] as const)('the SDK in a page, with %s', (codec) => {
  it('subscribes, publishes, receives and acknowledges', async () => {
    const sdk = await openSdk(node.port);
    const topic = `item.page-${codec}`;
    await sdk.start({ topics: [topic, 'item.other.*'], codec, user: `page-${codec}` });
    await publisher.burst([topic], 3);
    expect(await sdk.publish(topic, { n: -1 })).toMatchObject({ offset: expect.any(Number) as number });
    await sdk.received(4);
    expect(await sdk.numbers(topic)).toEqual([...sent(topic), -1]);
    const push = await fetch(`${node.url}/v1/users/page-${codec}/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"hello":1}',
    });
    expect(await push.json()).toMatchObject({ status: 'sent', sessions: 1 });
    await sdk.until('the direct message', ({ directs }) => directs.length === 1, undefined);
    expect(await sdk.directs()).toEqual([{ hello: 1 }]);
    expect(sdk.loaded.includes('topicast-msgpack.min.js')).toBe(codec === 'msgpack');
  });

  it('handles each message once and in order through 30 cuts under 500 messages a second', async () => {
    const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 0xffff_ffff));
    const random = seededRandom(seed);
    const line = await openLine();
    const sdk = await openSdk(line.port);
    const topics = ['a', 'b', 'c', 'd', 'e'].map((name) => `item.cuts-${codec}.${name}`);
    await sdk.start({ topics, codec });
    const end = publisher.steadily(topics, 500);
    for (let cut = 1; cut <= 30; cut++) {
      await sdk.opened(cut);
      // Now before the first message, now in the middle of a replay, now of the live flow.
      await sdk.receivedMore(random.int(100));
      line.cut();
    }
    await sdk.opened(31);
    await end();
    const all = topics.reduce((sum, topic) => sum + sent(topic).length, 0);
    await sdk.received(all);
    for (const topic of topics) expect([seed, await sdk.numbers(topic)]).toEqual([seed, sent(topic)]);
    const told = (await sdk.events()).map(([name]) => name);
    expect(told.filter((name) => ['gap', 'unrecovered', 'error'].includes(name))).toEqual([]);
  });
});

describe('the SDK in a page', () => {
  it('comes back the moment the browser is online again, and misses nothing', async () => {
    const line = await openLine();
    const sdk = await openSdk(line.port);
    const topic = 'item.offline';
    await sdk.start({ topics: [topic], slowToRetry: true });
    await publisher.burst([topic], 5);
    await sdk.received(5);
    await sdk.page.context().setOffline(true);
    line.cut();
    await sdk.until(
      'waiting',
      ({ client }) => (client as unknown as { state: string }).state === 'waiting',
      undefined,
    );
    await publisher.burst([topic], 5);
    await sdk.page.context().setOffline(false);
    await sdk.received(10);
    expect(await sdk.numbers(topic)).toEqual(sent(topic));
  });

  it('comes back the moment its tab is shown again', async () => {
    const line = await openLine();
    const sdk = await openSdk(line.port);
    const topic = 'item.hidden';
    await sdk.start({ topics: [topic], slowToRetry: true, stored: true });
    const show = (state: string): Promise<void> =>
      sdk.page.evaluate((value) => {
        Object.defineProperty(document, 'visibilityState', { value, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));
      }, state);
    await publisher.burst([topic], 5);
    await sdk.received(5);
    await show('hidden');
    const offset = publisher.after(topic).at(-1)?.offset ?? 0;
    const stored = await sdk.page.evaluate(() => Object.values(localStorage).join());
    expect(stored).toContain(`:${offset}`);
    const devtools = await sdk.page.context().newCDPSession(sdk.page);
    await devtools.send('Page.setWebLifecycleState', { state: 'frozen' });
    line.cut();
    await publisher.burst([topic], 5);
    await devtools.send('Page.setWebLifecycleState', { state: 'active' });
    await sdk.until(
      'waiting',
      ({ client }) => (client as unknown as { state: string }).state === 'waiting',
      undefined,
    );
    await show('visible');
    await sdk.received(10);
    expect(await sdk.numbers(topic)).toEqual(sent(topic));
  });

  it('goes on after a reload where it was, by the positions that it stored', async () => {
    const sdk = await openSdk(node.port);
    const topic = 'item.reload';
    await sdk.start({ topics: [topic], stored: true });
    await publisher.burst([topic], 5);
    await sdk.received(5);
    const before = await sdk.numbers(topic);
    await sdk.page.goto('about:blank');
    await publisher.burst([topic], 5);
    await sdk.load();
    await sdk.start({ topics: [topic], stored: true });
    await publisher.burst([topic], 1);
    await sdk.received(6);
    expect([...before, ...(await sdk.numbers(topic))]).toEqual(sent(topic));
  });

  it('finds a server that was killed and started again, and says what cannot be resumed', async () => {
    const port = await freePort();
    const first = await startNode({ ...env, TOPICAST_PORT: String(port) });
    const sdk = await openSdk(port);
    await sdk.start({ topics: ['item.killed', 'price.killed'] });
    await sdk.publish('item.killed', { n: 1 });
    await sdk.received(1);
    await first.kill();
    await sdk.until(
      'waiting',
      ({ events }) => events.some(([, { state }]) => state === 'waiting'),
      undefined,
    );
    await startNode({ ...env, TOPICAST_PORT: String(port) });
    await sdk.opened(2);
    await sdk.until(
      'unrecovered',
      ({ events }) => events.some(([name]) => name === 'unrecovered'),
      undefined,
    );
    const unrecovered = (await sdk.events()).filter(([name]) => name === 'unrecovered');
    expect(unrecovered).toEqual([['unrecovered', { topic: 'item.killed' }]]);
    await sdk.publish('price.killed', { n: 2 });
    await sdk.publish('item.killed', { n: 3 });
    await sdk.received(3);
    expect(await sdk.numbers('item.killed')).toEqual([1, 3]);
  });

  it('renews its token on the living connection', async () => {
    const guarded = await startNode({ ...env, ...authEnv, TOPICAST_EXPIRING_SEC: '4' });
    const sdk = await openSdk(guarded.port);
    let given = 0;
    let firstEnds = 0;
    await sdk.page.exposeFunction('nextToken', () => {
      given++;
      const ttlSec = given === 1 ? 6 : 600;
      if (given === 1) firstEnds = Math.floor(Date.now() / 1000) * 1000 + ttlSec * 1000;
      return signToken({ sub: 'page', can: { sub: ['item.>'] }, ttlSec });
    });
    await sdk.start({ topics: ['item.token'], tokens: true });
    await eventually('a second token was asked for', async () => given === 2);
    await eventually('the first token has ended', async () => Date.now() > firstEnds + 1500);
    await fetch(`${guarded.url}/v1/topics/item.token/messages`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}` },
      body: '{"n":1}',
    });
    await sdk.received(1);
    const states = (await sdk.events()).flatMap(([name, { state }]) => (name === 'state' ? [state] : []));
    expect(states).toEqual(['open']);
  });
});
