import { pack, Packr } from 'msgpackr';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { closeCodes, jsonCodec, jsonPayload, msgpackCodec, type Codec } from '../../protocol/mod.js';
import { codecs, connect, payloadOf, valueOf, type TestClient } from '../support/client.js';
import { startNode, type NodeProcess } from '../support/node-process.js';
import { seededRandom, type Random } from '../support/random.js';

/** Rates that do not come into the way. */
const unhurried = {
  TOPICAST_LIMIT_FRAMES_PER_SEC: '1000000',
  TOPICAST_LIMIT_FRAMES_BURST: '1000000',
  TOPICAST_CONNECT_RATE: '1000000',
};

let node: NodeProcess;
beforeAll(async () => {
  node = await startNode(unhurried);
});
afterEach(() => {
  expect(node.stderr).not.toContain('unexpected fault');
});

const both = codecs.map((codec) => [codec.name, codec] as const);

describe.each(both)('fuzzed %s frames', (name, codec) => {
  test('never harm the node, and are answered with frames or a close code', async () => {
    const seed = Number(process.env['FUZZ_SEED'] ?? Math.floor(Math.random() * 0xffff_ffff));
    try {
      await fuzz(codec, seed, 50_000);
    } catch (cause) {
      throw new Error(`FUZZ_SEED=${seed} (${name})`, { cause });
    }
  });
});

const fuzzClosesAllowed = new Set<number>([1002, 1006, 1007, 1009, closeCodes.invalidFrames]);
/** Fewer than a connection may send invalid ones. */
const fuzzBatch = 15;

async function fuzz(codec: Codec, seed: number, count: number): Promise<void> {
  const random = seededRandom(seed);
  const valid = validFrames(codec);
  let client: TestClient | undefined;
  for (let sent = 0; sent < count;) {
    client ??= await connect({ port: node.port, codec, topics: ['item.fuzz', 'fuzz.>'] });
    const last = random.int(20) === 0;
    for (let i = 0; i < fuzzBatch; i++, sent++) client.socket.send(mutant(codec, random, valid));
    if (last) {
      // Not even text, or the wrong kind of message: the connection may be cut.
      sent++;
      client.socket.send(random.bytes(1 + random.int(300)), {
        binary: random.int(4) > 0 !== (codec.name === 'json'),
      });
    }
    client.send({ type: 'ping' });
    await client.signal.until(
      'a pong or the end',
      () => client!.end !== undefined || client!.ofType('pong').length > 0,
    );
    expect(client.faults).toEqual([]);
    if (client.end !== undefined) expect(fuzzClosesAllowed).toContain(client.end.code);
    const errors = client.ofType('error').length;
    client.frames.length = 0;
    if (client.end === undefined && errors === 0) continue;
    if (client.end === undefined) await client.cut();
    client = undefined;
  }
  await client?.cut();
  const after = await connect({ port: node.port, codec });
  await after.ping();
  await after.close();
}

function validFrames(codec: Codec): (string | Uint8Array)[] {
  const data = payloadOf(codec, { price: 12.5, tags: ['a', null, true], text: 'é"\\' });
  return [
    codec.encodeClient({
      type: 'subscribe',
      req: 1,
      topics: [{ topic: 'item.1' }, { topic: 'item.*', last: 3 }],
    }),
    codec.encodeClient({
      type: 'subscribe',
      req: 2,
      topics: [{ topic: 'fuzz.a', epoch: 'abc', offset: 300 }],
    }),
    codec.encodeClient({ type: 'unsubscribe', req: 3, topics: ['item.1', 'item.*', 'fuzz.a'] }),
    codec.encodeClient({ type: 'publish', req: 4, topic: 'fuzz.a', data }),
    codec.encodeClient({ type: 'publish', req: 70_000, topic: 'item.1', data, id: 'x1' }),
    codec.encodeClient({ type: 'ack', ids: [1, 2, 3_000_000_000] }),
    codec.encodeClient({ type: 'ping' }),
    codec.encodeClient({ type: 'auth', req: 5, token: 'a.b.c' }),
  ];
}

/** Text stays text, so that a JSON connection outlives it. */
function mutant(codec: Codec, random: Random, valid: readonly (string | Uint8Array)[]): string | Uint8Array {
  const base = random.pick(valid);
  if (codec.name === 'json') return mutatedText(String(base), random, valid);
  if (random.int(10) === 0) return random.bytes(random.int(200));
  const bytes = Uint8Array.from(base as Uint8Array);
  switch (random.int(4)) {
    case 0:
      return bytes.subarray(0, random.int(bytes.length));
    case 1: {
      const other = random.pick(valid) as Uint8Array;
      return Buffer.concat([
        bytes.subarray(0, random.int(bytes.length)),
        other.subarray(random.int(other.length)),
      ]);
    }
    default:
      for (let i = random.int(4); i >= 0; i--) bytes[random.int(bytes.length)] = random.int(256);
      return bytes;
  }
}

const jsonShreds = [
  '{',
  '}',
  '[',
  ']',
  '"',
  ',',
  ':',
  '\\',
  '\\u',
  'null',
  '-',
  '1e999',
  '0',
  '\u0000',
  'é',
  '\ufeff',
  '  ',
];

function mutatedText(text: string, random: Random, valid: readonly (string | Uint8Array)[]): string {
  const at = random.int(text.length + 1);
  switch (random.int(5)) {
    case 0:
      return text.slice(0, at);
    case 1:
      return text.slice(0, at) + String(random.pick(valid)).slice(at);
    case 2:
      return Buffer.from(random.bytes(random.int(100))).toString('latin1');
    case 3:
      return text.slice(0, at) + random.pick(jsonShreds) + text.slice(at);
    default:
      return text.slice(0, at) + random.pick(jsonShreds) + text.slice(at + 1 + random.int(3));
  }
}

describe('frames that are not to be', () => {
  test('are closed with 4500 when they do not end', async () => {
    const client = await connect({ port: node.port });
    for (let i = 0; i < 200; i++) client.socket.send('{"type":');
    expect((await client.ended()).code).toBe(closeCodes.invalidFrames);
    expect(client.ofType('error').length).toBeGreaterThan(0);
    expect(client.ofType('bye')).toMatchObject([{ code: closeCodes.invalidFrames }]);
  });

  test.each(both)('too large for a %s frame: answered, and the connection lives', async (_name, codec) => {
    const client = await connect({ port: node.port, codec });
    client.send({ type: 'publish', req: 1, topic: 'news.a', data: payloadOf(codec, 'x'.repeat(300_000)) });
    expect(await client.frame('error')).toMatchObject({ code: 'payload_too_large' });
    await client.ping();
    await client.close();
  });

  test('of a megabyte: the connection is cut, the node lives', async () => {
    const client = await connect({ port: node.port });
    client.socket.send(`{"type":"publish","topic":"news.a","data":"${'x'.repeat(1_000_000)}"}`);
    expect([1006, 1009]).toContain((await client.ended()).code);
    await (await connect({ port: node.port })).close();
  });

  test('text that is not UTF-8: the connection is cut, the node lives', async () => {
    const client = await connect({ port: node.port });
    client.socket.send(Buffer.from('7b2274797065223a2270ff696e67227d', 'hex'), { binary: false });
    expect([1006, 1007]).toContain((await client.ended()).code);
    expect(client.ofType('pong')).toEqual([]);
    await (await connect({ port: node.port })).close();
  });

  test.each(both)('of the other kind than %s: answered, and the connection lives', async (_name, codec) => {
    const client = await connect({ port: node.port, codec });
    const other = codec === jsonCodec ? msgpackCodec : jsonCodec;
    client.socket.send(other.encodeClient({ type: 'ping' }));
    expect(await client.frame('error')).toMatchObject({ code: 'invalid_frame' });
    await client.ping();
    expect(client.ofType('pong')).toHaveLength(1);
    await client.close();
  });

  test('unknown types are answered, unknown fields are ignored', async () => {
    const json = await connect({ port: node.port });
    json.socket.send('{"type":"dance","req":7}');
    expect(await json.frame('error')).toMatchObject({ code: 'unknown_type' });
    json.socket.send('{"zz":[{}],"type":"publish","req":8,"topic":"news.a","data":1,"later":{"a":[1]}}');
    expect(await json.frame('published')).toMatchObject({ req: 8, topic: 'news.a' });
    await json.close();
    const msgpack = await connect({ port: node.port, codec: msgpackCodec });
    msgpack.socket.send(pack([99, 7]));
    expect(await msgpack.frame('error')).toMatchObject({ code: 'unknown_type' });
    msgpack.socket.send(pack([3, 8, 'news.a', 1, null, { later: [1] }]));
    expect(await msgpack.frame('published')).toMatchObject({ req: 8, topic: 'news.a' });
    await msgpack.close();
  });
});

describe('topics', () => {
  const faulty = [
    '..',
    'a..b',
    '*x',
    'item.*x',
    '*.a',
    '>',
    'é',
    'item.é',
    '',
    `a.${'b'.repeat(199)}`,
    'a.b.c.d.e.f.g.h.i',
    'a b',
    'a@b',
  ];

  test.each(both)('that are malformed are told one by one (%s)', async (_name, codec) => {
    const client = await connect({ port: node.port, codec });
    const topics = [...faulty, `a.${'b'.repeat(198)}`, 'a.b.c.d.e.f.g.h'].map((topic) => ({ topic }));
    client.send({ type: 'subscribe', req: 1, topics });
    await client.until('all are told', () => told(client).length === topics.length);
    const errors = told(client).filter((topic) => 'error' in topic);
    expect(new Set(errors.map((topic) => topic.topic))).toEqual(new Set(faulty));
    expect(errors.every((topic) => 'error' in topic && topic.error === 'invalid_topic')).toBe(true);
    for (const topic of faulty) {
      const answer = await client.ask('error', { type: 'publish', topic, data: payloadOf(codec, 1) });
      expect(answer.code).toBe('invalid_topic');
    }
    await client.close();
  });

  test('above the limit are refused, ten thousand in frames of five hundred', async () => {
    const client = await connect({ port: node.port });
    for (let i = 0; i < 10_000; i += 500) {
      const topics = Array.from({ length: 500 }, (_, k) => ({ topic: `many.${i + k}` }));
      client.send({ type: 'subscribe', req: i, topics });
    }
    await client.until('all are told', () => told(client).length === 10_000);
    const accepted = told(client).filter((topic) => !('error' in topic));
    expect(accepted.map((topic) => topic.topic)).toEqual(Array.from({ length: 512 }, (_, i) => `many.${i}`));
    const refused = told(client).flatMap((topic) => ('error' in topic ? [topic.error] : []));
    expect(new Set(refused)).toEqual(new Set(['too_many_topics']));
    await client.ping();
    await client.close();
  });

  test('ten thousand in one frame are refused for its size, or told one by one', async () => {
    const client = await connect({ port: node.port });
    const topics = Array.from({ length: 10_000 }, (_, i) => ({ topic: `many.${i}` }));
    client.send({ type: 'subscribe', req: 1, topics });
    expect(await client.frame('error')).toMatchObject({ code: 'payload_too_large' });
    // Shorter names fit into one frame.
    const short = Array.from({ length: 5_000 }, (_, i) => ({ topic: `m.${i.toString(36)}` }));
    client.send({ type: 'subscribe', req: 2, topics: short });
    await client.until('all are told', () => told(client).length === 5_000);
    expect(told(client).filter((topic) => !('error' in topic))).toHaveLength(512);
    await client.close();
  });

  function told(client: TestClient) {
    return client.ofType('subscribed').flatMap((frame) => frame.topics);
  }
});

test.each(both)('a %s frame that names no topic is answered like any other', async (_, codec) => {
  const client = await connect({ port: node.port, codec });
  client.send({ type: 'subscribe', req: 1, topics: [] });
  client.send({ type: 'unsubscribe', req: 2, topics: [] });
  await client.ping();
  expect(client.frames.slice(1, 3)).toEqual([
    { type: 'subscribed', req: 1, topics: [] },
    { type: 'unsubscribed', req: 2, topics: [] },
  ]);
  await client.close();
});

describe('payloads', () => {
  const text =
    '{ "id": 9007199254740993, "price": 1.0, "big": -9223372036854775808,\t"e": 1e2, "u": "\\u00e9" }';

  test('cross untouched between clients of one codec, and with all their digits between codecs', async () => {
    const [json, msgpack] = await Promise.all(
      codecs.map((codec) => connect({ port: node.port, codec, topics: ['news.numbers', 'item.numbers'] })),
    );
    await Promise.all([json!.ping(), msgpack!.ping()]);
    for (const topic of ['news.numbers', 'item.numbers']) {
      json!.socket.send(`{"type":"publish","req":1,"topic":"${topic}","data":${text}}`);
      const same = await json!.frame('msg', (frame) => frame.topic === topic);
      expect(same.data).toEqual({ format: 'json', text });
      const crossed = await msgpack!.frame('msg', (frame) => frame.topic === topic);
      if (crossed.data.format !== 'msgpack') throw new Error('expected MessagePack');
      const exact = new Packr({ int64AsType: 'bigint', mapsAsObjects: true }).unpack(
        Buffer.from(crossed.data.bytes),
      ) as object;
      expect(exact).toMatchObject({
        id: 9007199254740993n,
        price: 1,
        big: -9223372036854775808n,
        e: 100,
        u: 'é',
      });

      const before = [json!.frames.length, msgpack!.frames.length] as const;
      msgpack!.send({ type: 'publish', req: 2, topic, data: crossed.data });
      const back = await json!.frame('msg', (frame) => frame.topic === topic, before[0]);
      if (back.data.format !== 'json') throw new Error('expected JSON');
      expect(back.data.text).toContain('9007199254740993');
      expect(back.data.text).toContain('-9223372036854775808');
      const bytes = await msgpack!.frame('msg', (frame) => frame.topic === topic, before[1]);
      expect(bytes.data).toEqual(crossed.data);
    }
    await Promise.all([json!.close(), msgpack!.close()]);
  });
});

describe('the order of things', () => {
  test('frames that come before welcome are handled after it', async () => {
    for (const codec of codecs) {
      const data = payloadOf(codec, 'early');
      const early = [
        codec.encodeClient({ type: 'subscribe', req: 1, topics: [{ topic: 'item.early' }] }),
        codec.encodeClient({ type: 'publish', req: 2, topic: 'item.early', data }),
        codec.encodeClient({ type: 'ping' }),
      ];
      const client = await connect({ port: node.port, codec, topics: ['news.early'], early });
      await client.frame('msg', (frame) => frame.topic === 'item.early');
      await client.frame('pong');
      await client.frame('published', (frame) => frame.req === 2);
      expect(client.frames[0]?.type).toBe('welcome');
      const named = client.ofType('subscribed').map((frame) => frame.topics[0]?.topic);
      expect(named).toEqual(['news.early', 'item.early']);
      await client.close();
    }
  });

  test('of a burst above the rate every frame is answered: refused with its number, or accepted and delivered once in order', async () => {
    const limited = await startNode();
    for (const codec of codecs) {
      const reader = await connect({
        port: limited.port,
        codec,
        user: 'reader',
        topics: ['item.burst', 'news.burst'],
      });
      await reader.ping();
      const client = await connect({ port: limited.port, codec, user: 'writer' });
      const count = 10_000;
      for (let i = 0; i < count; i++) {
        const topic = i % 2 === 0 ? 'item.burst' : 'news.burst';
        client.send({ type: 'publish', req: i, topic, data: payloadOf(codec, i) });
      }
      const answers = () => client.frames.filter((f) => f.type === 'published' || f.type === 'error');
      await client.until('every publish is answered', () => answers().length >= count);
      const accepted = client.ofType('published').map((frame) => frame.req);
      const refused = client.ofType('error');
      expect(new Set(refused.map((frame) => frame.code))).toEqual(new Set(['rate_limited']));
      expect(new Set([...accepted, ...refused.map((frame) => frame.req)]).size).toBe(count);
      expect(accepted.length).toBeGreaterThanOrEqual(200);
      expect(accepted.length).toBeLessThan(count / 2);
      await reader.until('all that was accepted came', () => reader.messages.length >= accepted.length);
      await reader.ping();
      for (const topic of ['item.burst', 'news.burst']) {
        const got = reader.messages.filter((m) => m.topic === topic).map((m) => valueOf(m.data));
        expect(got).toEqual(accepted.filter((i) => (i! % 2 === 0) === (topic === 'item.burst')));
      }
      await client.close();
      await reader.close();
    }
  });
});

test('a payload that is too large for a message is refused where frames may be larger', async () => {
  const roomy = await startNode({ ...unhurried, TOPICAST_LIMIT_FRAME_BYTES: '400000' });
  const client = await connect({ port: roomy.port });
  const refused = await client.ask('error', {
    type: 'publish',
    topic: 'news.a',
    data: payloadOf(jsonCodec, 'x'.repeat(300_000)),
  });
  expect(refused.code).toBe('payload_too_large');
  const fits = jsonPayload(`"${'x'.repeat(262_142)}"`);
  if (!fits.ok) throw new Error(fits.message);
  await client.ask('published', { type: 'publish', topic: 'news.a', data: fits.value });
  await client.close();
});
