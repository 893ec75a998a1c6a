import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { memoryStorage, type ClientOptions, type Message } from '../../client/mod.js';
import { jsonCodec } from '../../protocol/mod.js';
import { freePort, startNode, type NodeProcess } from '../support/node-process.js';
import { seededRandom } from '../support/random.js';
import { SdkClient } from '../support/sdk.js';
import { eventually } from '../support/signal.js';
import { Publisher, unhurried } from '../support/stream.js';
import { apiKey, authEnv, signToken } from '../support/tokens.js';

let node: NodeProcess;
let guarded: NodeProcess;
beforeAll(async () => {
  node = await startNode(unhurried);
  guarded = await startNode({ ...unhurried, ...authEnv, TOPICAST_EXPIRING_SEC: '600' });
});

const open: SdkClient[] = [];
afterEach(() => {
  for (const sdk of open.splice(0)) sdk.client.close();
});

function start(port: number, options: ClientOptions = {}): SdkClient {
  const sdk = new SdkClient(port, options);
  open.push(sdk);
  return sdk;
}

const codecs = ['json', 'msgpack'] as const;
interface Numbered {
  readonly n: number;
}

describe.each(codecs)('a client with %s', (codec) => {
  test('handles each message once and in order, whatever the line does', { timeout: 60_000 }, async () => {
    const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 0xffff_ffff));
    try {
      await readThroughCuts(codec, seed);
    } catch (cause) {
      throw new Error(`SEED=${seed} (${codec})`, { cause });
    }
  });

  test('stores what is published across a cut once', async () => {
    const topic = `item.queue-${codec}`;
    const sdk = start(node.port, { codec, user: `pub-${codec}` });
    const got: unknown[] = [];
    const reader = start(node.port, { user: 'reader' });
    reader.client.subscribe<Numbered>(topic, ({ data }) => {
      got.push(data.n);
      reader.signal.notify();
    });
    await reader.subscribed([topic]);
    await sdk.client.whenOpen();
    const results: Promise<unknown>[] = [];
    for (let n = 0; n < 60; n++) {
      results.push(sdk.client.publish(topic, { n }));
      // In the middle of those that were sent and have no answer, and of those that wait.
      if (n % 20 === 10) sdk.cut();
    }
    const places = (await Promise.all(results)) as { offset: number }[];
    expect(new Set(places.map(({ offset }) => offset)).size).toBe(60);
    await reader.until('all of them', () => got.length >= 60);
    expect(got).toEqual(Array.from({ length: 60 }, (_, n) => n));
  });

  test('publishes and receives any value of JSON, and says where it was stored', async () => {
    const sdk = start(node.port, { codec, topics: ['item.values.*'] });
    const got: Message[] = [];
    sdk.client.on('message', (message) => {
      got.push(message);
      sdk.signal.notify();
    });
    await sdk.subscribed(['item.values.*']);
    const values = [null, true, 1.5, -3, 'ü€𝄞', [], [1, [2]], { a: { b: null } }, 'x'.repeat(20_000)];
    const topic = `item.values.${codec}`;
    const places = await Promise.all(values.map((value) => sdk.client.publish(topic, value)));
    await sdk.until('all values', () => got.length === values.length);
    expect(got).toEqual(values.map((data, i) => ({ topic, data, offset: places[i]?.offset })));
    const twice = await sdk.client.publish(topic, 1, { id: 'x' });
    expect(await sdk.client.publish(topic, 1, { id: 'x' })).toEqual({ ...twice, duplicate: true });
    expect(await sdk.client.publish('live.topic', 1)).toEqual({});
  });
});

async function readThroughCuts(codec: 'json' | 'msgpack', seed: number): Promise<void> {
  const random = seededRandom(seed);
  const names = ['a', 'b', 'c', 'd', 'e'];
  const space = `item.cuts-${codec}-${seed}`;
  const topics = names.map((name) => `${space}.${name}`);
  const pattern = `${space}.*`;
  const sdk = start(node.port, { codec, random: () => random.int(1000) / 1000 });
  const byTopic = new Map<string, number[]>();
  const byPattern = new Map<string, number[]>();
  let seen = 0;
  const note = (into: Map<string, number[]>, { topic, data }: Message<Numbered>): void => {
    seen++;
    const list = into.get(topic) ?? [];
    into.set(topic, list);
    list.push(data.n);
    sdk.signal.notify();
  };
  for (const topic of topics) sdk.client.subscribe<Numbered>(topic, (message) => note(byTopic, message));
  await sdk.subscribed(topics);

  const publisher = await Publisher.connect(node.port, jsonCodec);
  const end = publisher.steadily(topics, 500);
  let patternFrom: number | undefined;
  sdk.client.on('subscribed', ({ topic, offset }) => {
    if (topic === pattern) patternFrom ??= offset;
  });
  for (let cuts = 1; cuts <= 30; cuts++) {
    const [tries, enough] = [sdk.urls.length, seen + 1 + random.int(150)];
    sdk.cut();
    // Now in the middle of a handshake, now of a replay, now of the live flow.
    if (random.int(4) === 0) await sdk.until('the next try', () => sdk.urls.length > tries);
    else await sdk.until(`${enough} messages`, () => seen >= enough);
    // Joins in the middle of it all.
    if (cuts === 5) sdk.client.subscribe<Numbered>(pattern, (message) => note(byPattern, message));
  }
  await end();
  const wanted = new Map(topics.map((topic) => [topic, publisher.after(topic).map(({ n }) => n)]));
  const last = (of: Map<string, number[]>, topic: string): number | undefined => of.get(topic)?.at(-1);
  await sdk.until('the last of each topic', () =>
    topics.every((topic) => {
      const n = wanted.get(topic)?.at(-1);
      return last(byTopic, topic) === n && last(byPattern, topic) === n;
    }),
  );
  expect(Object.fromEntries(byTopic)).toEqual(Object.fromEntries(wanted));
  for (const topic of topics) {
    expect(byPattern.get(topic)).toEqual(publisher.after(topic, patternFrom).map(({ n }) => n));
  }
  expect(sdk.of('unrecovered')).toEqual([]);
  expect(sdk.of('gap')).toEqual([]);
  await publisher.client.close();
}

test('a snapshot starts with the last ones, and a second one does not disturb the first', async () => {
  const publisher = await Publisher.connect(node.port, jsonCodec);
  await publisher.burst(['item.snap'], 20);
  const sdk = start(node.port);
  const first: number[] = [];
  const second: number[] = [];
  sdk.client.subscribe<Numbered>('item.snap', ({ data }) => void first.push(data.n), { last: 3 });
  await sdk.subscribed(['item.snap']);
  sdk.client.subscribe<Numbered>(
    'item.snap',
    ({ data }) => {
      second.push(data.n);
      sdk.signal.notify();
    },
    { last: 5 },
  );
  await sdk.until('five', () => second.length === 5);
  await publisher.burst(['item.snap'], 5);
  await sdk.until('ten', () => second.length === 10);
  expect(second).toEqual([15, 16, 17, 18, 19, 20, 21, 22, 23, 24]);
  expect(first).toEqual([17, 18, 19, 20, 21, 22, 23, 24]);
  await publisher.client.close();
});

test('positions in a storage carry over to the next client', async () => {
  const publisher = await Publisher.connect(node.port, jsonCodec);
  const storage = memoryStorage();
  const got: number[] = [];
  const listen = (): SdkClient => {
    const sdk = start(node.port, { storage, user: 'reloader' });
    sdk.client.subscribe<Numbered>('item.reload', ({ data }) => {
      got.push(data.n);
      sdk.signal.notify();
    });
    return sdk;
  };
  const before = listen();
  await before.subscribed(['item.reload']);
  await publisher.burst(['item.reload'], 5);
  await before.until('five', () => got.length === 5);
  before.client.close();
  await publisher.burst(['item.reload'], 5);
  const after = listen();
  await after.until('ten', () => got.length === 10);
  expect(got).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(after.urls[0]).toContain('topics=item.reload@');
  const other = start(node.port, { storage, user: 'another', topics: ['item.reload'] });
  await other.subscribed(['item.reload']);
  expect(other.urls[0]).not.toContain('@');
  await publisher.client.close();
});

test('more topics than a handshake holds are all subscribed, and resumed', async () => {
  const topics = Array.from({ length: 400 }, (_, i) => `item.many-${'x'.repeat(40)}-${i}`);
  const sdk = start(node.port);
  const got: Message<Numbered>[] = [];
  for (const topic of topics) {
    sdk.client.subscribe<Numbered>(topic, (message) => {
      got.push(message);
      sdk.signal.notify();
    });
  }
  await sdk.subscribed(topics);
  sdk.cut();
  const publisher = await Publisher.connect(node.port, jsonCodec);
  await publisher.burst(topics, 400);
  await sdk.until('one of each', () => got.length === 400);
  expect(new Set(got.map(({ topic }) => topic)).size).toBe(400);
  expect(sdk.urls.every((url) => !url.includes('topics='))).toBe(true);
  expect(sdk.of('unrecovered')).toEqual([]);
  await publisher.client.close();
});

test('a node that comes back with an empty store is told of, and goes on', { timeout: 60_000 }, async () => {
  const port = await freePort();
  const env = { ...unhurried, TOPICAST_PORT: String(port) };
  const first = await startNode(env);
  const sdk = start(port);
  const got: number[] = [];
  sdk.client.subscribe<Numbered>('item.restart', ({ data }) => {
    got.push(data.n);
    sdk.signal.notify();
  });
  await sdk.subscribed(['item.restart']);
  const before = await Publisher.connect(port, jsonCodec);
  await before.burst(['item.restart'], 3);
  await sdk.until('three', () => got.length === 3);
  await first.kill();
  const waiting = sdk.client.publish('item.other', 'queued');
  const second = await startNode(env);
  await sdk.subscribed(['item.restart'], 2);
  expect(await waiting).toMatchObject({ offset: 1 });
  expect(sdk.of('unrecovered')).toEqual([{ topic: 'item.restart' }]);
  const after = await Publisher.connect(port, jsonCodec);
  await after.burst(['item.restart'], 3);
  await sdk.until('three more', () => got.length === 6);
  expect(got).toEqual([0, 1, 2, 0, 1, 2]);
  await after.client.close();
  await second.stop();
});

describe('the token', () => {
  test('is renewed on the living connection', async () => {
    const tokens = [
      await signToken({ sub: 'renewer', topics: ['item.renew'], ttlSec: 500 }),
      await signToken({ sub: 'renewer', topics: ['item.renew'], can: { pub: ['item.renew'] }, ttlSec: 5000 }),
    ];
    const sdk = start(guarded.port, { getToken: () => tokens.shift() ?? '' });
    await sdk.subscribed(['item.renew']);
    await sdk.until('a warning', () => sdk.of('expiring').length > 0);
    // Only the second token allows it.
    const allowed = (): Promise<boolean> =>
      sdk.client.publish('item.renew', 1).then(
        () => true,
        () => false,
      );
    await eventually('the new token to count', allowed);
    // On the very connection, and without a fault.
    expect(sdk.events.filter(([name]) => name === 'error')).toEqual([]);
    const states = sdk.events.flatMap(([name, event]) =>
      name === 'state' ? [(event as { state?: string }).state] : [],
    );
    expect(states.filter((state) => state !== 'connecting')).toEqual(['open']);
  });

  test('of somebody else is refused on the living connection, which goes on, and that is told', async () => {
    const tokens = [
      await signToken({ sub: 'loyal', topics: ['item.loyal'], ttlSec: 500 }),
      await signToken({ sub: 'other', ttlSec: 5000 }),
    ];
    const sdk = start(guarded.port, { getToken: () => tokens.shift() ?? '' });
    await sdk.until('the refusal', () => sdk.of('error').length > 0);
    expect(sdk.of('error')).toMatchObject([{ code: 'token' }]);
    expect([sdk.client.state, sdk.urls.length]).toEqual(['open', 1]);
  });

  test('is asked for once more after 401, and then it is over', async () => {
    const wrong = await signToken({ sub: 'x' }, 'another-secret-that-the-node-does-not-know');
    let asked = 0;
    const sdk = start(guarded.port, { getToken: () => (asked++, wrong) });
    await expect(sdk.client.whenOpen()).rejects.toMatchObject({ code: 'unauthorized' });
    expect(asked).toBe(2);
    expect(sdk.client.state).toBe('closed');
    await expect(sdk.client.publish('item.x', 1)).rejects.toMatchObject({ code: 'closed' });

    const tokens = [wrong, await signToken({ sub: 'x' })];
    const second = start(guarded.port, { getToken: () => tokens.shift() ?? '' });
    await second.client.whenOpen();
  });

  test('decides what is refused', async () => {
    const token = await signToken({ sub: 'narrow', can: { sub: ['coupon.*'], pub: ['coupon.*'] } });
    const sdk = start(guarded.port, { token, topics: ['coupon.a'] });
    sdk.client.subscribe('item.a', () => undefined);
    await sdk.until('a refusal', () => sdk.of('refused').length === 1);
    expect(sdk.of('refused')).toEqual([{ topic: 'item.a', code: 'forbidden', final: true }]);
    await expect(sdk.client.publish('item.a', 1)).rejects.toMatchObject({
      code: 'forbidden',
      topic: 'item.a',
    });
    expect(await sdk.client.publish('coupon.a', 1)).toHaveProperty('offset');
  });

  test('of a user who was thrown out ends it for good', async () => {
    const sdk = start(guarded.port, { token: await signToken({ sub: 'kicked' }) });
    await sdk.client.whenOpen();
    await fetch(`${guarded.url}/v1/users/kicked/sessions`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${apiKey}` },
    });
    await sdk.until('the end', () => sdk.client.state === 'closed');
    expect(sdk.of('error')).toMatchObject([{ code: 'refused' }]);
    expect(sdk.urls).toHaveLength(1);
  });
});

describe('direct messages', () => {
  async function push(user: string, data: unknown): Promise<void> {
    const response = await fetch(`${guarded.url}/v1/users/${user}/messages`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify(data),
    });
    expect(response.status).toBe(200);
  }

  test('are acknowledged once handled, and come again when that failed', async () => {
    const token = await signToken({ sub: 'direct' });
    const sdk = start(guarded.port, { token });
    const seen: unknown[] = [];
    let fail = true;
    sdk.client.onDirect(async ({ data }) => {
      await Promise.resolve();
      seen.push(data);
      sdk.signal.notify();
      if (data === 'bad' && fail) throw new Error('not now');
    });
    await sdk.client.whenOpen();
    await push('direct', 'good');
    await push('direct', 'bad');
    await sdk.until('both and a fault', () => seen.length === 2 && sdk.of('error').length === 1);
    expect(sdk.of('error')).toMatchObject([{ code: 'handler' }]);
    fail = false;
    sdk.cut();
    await sdk.until('the bad one again', () => seen.length === 3);
    expect(seen).toEqual(['good', 'bad', 'bad']);
    await push('direct', 'last');
    await sdk.until('the last', () => seen.length === 4);
    expect(seen[3]).toBe('last');
  });

  test('that were handled are not handled again when the acknowledgement was lost', async () => {
    const token = await signToken({ sub: 'lost-ack' });
    const sdk = start(guarded.port, { token });
    const seen: unknown[] = [];
    sdk.client.onDirect(({ data }) => {
      seen.push(data);
      // Before the acknowledgement leaves, which waits for company.
      if (data === 1) sdk.cut();
      sdk.signal.notify();
    });
    await sdk.client.whenOpen();
    await push('lost-ack', 1);
    await sdk.until('two connections', () => sdk.urls.length === 2 && sdk.client.state === 'open');
    await push('lost-ack', 2);
    await sdk.until('the second', () => seen.length === 2);
    expect(seen).toEqual([1, 2]);
  });
});
