import { describe, expect, it } from 'vitest';
import { encodeJsonServer } from '../../protocol/codec-json.js';
import { encodeMsgpackServer, msgpackCodec } from '../../protocol/codec-msgpack.js';
import { decodeJsonClient } from '../../protocol/codec-json.js';
import type { ServerFrame } from '../../protocol/frames.js';
import { jsonToMsgpack } from '../../protocol/transcode-json.js';
import { Deliveries } from '../../bench/fleet/deliveries.js';
import { planHerds } from '../../bench/fleet/fleet-plan.js';
import { clientFrame, FrameStream, type FrameHandler } from '../../bench/fleet/frame-stream.js';
import { Latencies, mergeLatencies } from '../../bench/fleet/latencies.js';
import { markedPayload, markerOf, payloadText } from '../../bench/fleet/marker.js';
import {
  emptyMessage,
  jsonReader,
  msgpackReader,
  type ReadMessage,
} from '../../bench/fleet/message-reader.js';
import { Pacer, retryDelayMs } from '../../bench/fleet/pacer.js';
import { TopicIndex } from '../../bench/fleet/topic-index.js';
import { handshakeRoom, retryAfterSec } from '../../bench/fleet/upgrade.js';
import { signTokens } from '../../bench/fleet/users.js';
import { seededRandom } from '../support/random.js';

const head = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n';

function serverFrame(payload: Uint8Array, opcode = 1): Buffer {
  const size =
    payload.length < 126
      ? [payload.length]
      : payload.length < 65_536
        ? [126, payload.length >> 8, payload.length & 0xff]
        : [127, 0, 0, 0, 0, 0, payload.length >> 16, (payload.length >> 8) & 0xff, payload.length & 0xff];
  return Buffer.concat([Buffer.from([0x80 | opcode, ...size]), payload]);
}

type Codec = 'json' | 'msgpack';

function encode(codec: Codec, frame: ServerFrame): Buffer {
  const encoded = codec === 'json' ? encodeJsonServer(frame) : encodeMsgpackServer(frame);
  return Buffer.from(encoded as Uint8Array);
}

interface Expected {
  readonly topic: string;
  readonly pattern?: string;
  readonly offset?: number;
  readonly dueUs: number;
  readonly number: number;
  readonly bytes: number;
}

const messages: readonly Expected[] = [
  { topic: 'item.1', offset: 1, dueUs: 5, number: 0, bytes: 60 },
  { topic: 'floor.live', dueUs: 4_294_967_296, number: 127, bytes: 80 },
  { topic: 'item.1', offset: 70_000, dueUs: 90_000_000_000, number: 128, bytes: 300 },
  { topic: 'item.42', pattern: 'item.*', offset: 9_007_199_254, dueUs: 255, number: 65_536, bytes: 70_000 },
  { topic: 'coupon.food', pattern: 'coupon.>', dueUs: 1_000_000, number: 4_000_000_000, bytes: 100 },
  { topic: `coupon.${'x'.repeat(150)}`, offset: 300, dueUs: 77, number: 1, bytes: 80 },
];

function stream(codec: Codec): Buffer {
  const opcode = codec === 'json' ? 1 : 2;
  const frames = messages.map(({ bytes, dueUs, number, ...rest }) =>
    encode(codec, { type: 'msg', ...rest, data: markedPayload(codec, { dueUs, number }, bytes) }),
  );
  const others: ServerFrame[] = [
    { type: 'welcome', session: 'n.1', node: 'n', pingSec: 30, idleSec: 180 },
    { type: 'subscribed', topics: [{ topic: 'item.1', epoch: 'e', offset: 0, recovered: true }] },
    { type: 'gap', topic: 'item.1', from: 1, to: 2 },
  ];
  return Buffer.concat([
    Buffer.from(head),
    ...others.map((frame) => serverFrame(encode(codec, frame), opcode)),
    serverFrame(Buffer.alloc(0), 9),
    ...frames.map((frame) => serverFrame(frame, opcode)),
  ]);
}

/** Feeds the bytes in chunks through one reused buffer, as sockets do, and reads every message. */
function readAll(codec: Codec, bytes: Buffer, nextSize: () => number) {
  const reader = codec === 'json' ? jsonReader : msgpackReader;
  const into = emptyMessage();
  const seen: object[] = [];
  let others = 0;
  let pings = 0;
  const handler: FrameHandler = {
    onHead: (status) => expect(status).toBe(101),
    onFrame(opcode, chunk, start, end) {
      if (opcode === 9) pings++;
      else if (!reader.isMessage(chunk, start, end)) others++;
      else {
        reader.read(chunk, start, end, into);
        seen.push(namesOf(into, chunk));
      }
    },
  };
  const frames = new FrameStream();
  const shared = Buffer.alloc(bytes.length);
  for (let at = 0; at < bytes.length;) {
    const size = bytes.copy(shared, 0, at, at + nextSize());
    frames.push(shared.subarray(0, size), handler);
    shared.fill(0xff);
    at += size;
  }
  return { seen, others, pings };
}

function namesOf(message: ReadMessage, bytes: Buffer): object {
  const { dueUs, number, offset, patternEnd, patternStart, topicEnd, topicStart } = message;
  return {
    topic: bytes.toString('latin1', topicStart, topicEnd),
    pattern: bytes.toString('latin1', patternStart, patternEnd),
    offset,
    dueUs,
    number,
  };
}

const expectedMessages = messages.map(({ bytes: _, offset = -1, pattern = '', ...rest }) => ({
  ...rest,
  offset,
  pattern,
}));

describe.each(['json', 'msgpack'] as const)('reading %s frames', (codec) => {
  const bytes = stream(codec);

  it.each([1, 2, 3, 7, 64, 4096, bytes.length])('in chunks of %i bytes', (size) => {
    expect(readAll(codec, bytes, () => size)).toEqual({ seen: expectedMessages, others: 3, pings: 1 });
  });

  it('in chunks of any sizes', () => {
    for (let seed = 1; seed <= 50; seed++) {
      const random = seededRandom(seed);
      const seen = readAll(codec, bytes, () => 1 + random.int(1 + random.int(5000)));
      expect(seen, `seed ${seed}`).toEqual({ seen: expectedMessages, others: 3, pings: 1 });
    }
  });

  it('cut at any one place', () => {
    const short = bytes.subarray(0, 1_500);
    const whole = readAll(codec, short, () => short.length);
    expect(whole.seen.length).toBeGreaterThan(2);
    for (let cut = 1; cut < short.length; cut++) {
      let first = true;
      const sizes = (): number => {
        const size = first ? cut : short.length;
        first = false;
        return size;
      };
      expect(readAll(codec, short, sizes), `cut at ${cut}`).toEqual(whole);
    }
  });

  it('takes a payload that is not its own for a message without a number', () => {
    const text = '{"price":9.9}';
    const data =
      codec === 'json'
        ? ({ format: 'json', text } as const)
        : ({ format: 'msgpack', bytes: jsonToMsgpack(text) } as const);
    const frame = encode(codec, { type: 'msg', topic: 'item.1', data, offset: 3 });
    const reader = codec === 'json' ? jsonReader : msgpackReader;
    const into = emptyMessage();
    expect(reader.isMessage(frame, 0, frame.length)).toBe(true);
    reader.read(frame, 0, frame.length, into);
    expect(into).toMatchObject({ dueUs: -1, number: -1 });
  });

  it('reads what was transcoded from a publisher of the other codec', () => {
    const text = payloadText({ dueUs: 90_000_000_000, number: 70_000 }, 80);
    expect(markerOf({ format: 'msgpack', bytes: jsonToMsgpack(text) })).toEqual({
      dueUs: 90_000_000_000,
      number: 70_000,
    });
    const bytes = encodeMsgpackServer({
      type: 'msg',
      topic: 'a',
      data: { format: 'msgpack', bytes: jsonToMsgpack(text) },
    });
    const into = emptyMessage();
    msgpackReader.read(bytes, 0, bytes.length, into);
    expect(into).toMatchObject({ dueUs: 90_000_000_000, number: 70_000 });
  });
});

describe('one socket', () => {
  it('tells of a refused upgrade and when to come back', () => {
    let told: [number, number] | undefined;
    const frames = new FrameStream();
    frames.push(Buffer.from('HTTP/1.1 503 Service Unavailable\r\nRetry-After: 17\r\nX: y\r\n\r\nbusy'), {
      onHead: (status, text) => (told = [status, retryAfterSec(text)]),
      onFrame: () => expect.unreachable(),
    });
    expect(told).toEqual([503, 17]);
    expect(retryAfterSec('HTTP/1.1 503 No\r\nServer: x')).toBe(1);
  });

  it.each([0, 125, 126, 40_000])('writes frames of %i bytes that a server can read', (size) => {
    const payload = Buffer.alloc(size, 0x61);
    const frame = clientFrame(1, payload);
    const wide = size >= 126;
    expect(frame[0]).toBe(0x81);
    expect(frame[1]).toBe(0x80 | (wide ? 126 : size));
    if (wide) expect(frame.readUInt16BE(2)).toBe(size);
    const maskAt = wide ? 4 : 2;
    expect(frame.readUInt32BE(maskAt)).toBe(0);
    expect(frame.subarray(maskAt + 4)).toEqual(payload);
  });

  it('puts into a handshake what the header block has room for', () => {
    expect(handshakeRoom(['item.1', 'item.2'])).toBe(2);
    expect(handshakeRoom(Array.from({ length: 512 }, (_, i) => `item.${i}@epoch:${1e9 + i}`))).toBeLessThan(
      400,
    );
  });

  it('signs tokens that differ by user and are shared by the devices of one', async () => {
    const tokens = await signTokens({ prefix: 'u', secret: 's'.repeat(32), devices: 2 }, 3, 4);
    expect(tokens).toHaveLength(4);
    expect(tokens.map((token) => tokens.indexOf(token))).toEqual([0, 1, 1, 3]);
    expect(await signTokens({ prefix: 'u' }, 0, 4)).toEqual([]);
  });
});

it('makes payloads of the wanted size', () => {
  for (const number of [0, 99, 123_456]) {
    expect(payloadText({ dueUs: 1_234_567_890, number }, 80)).toHaveLength(80);
  }
});

describe('finding a topic by its bytes', () => {
  const names = Array.from({ length: 3_000 }, (_, i) => `item.${i}`);
  const index = new TopicIndex([...names, 'item.7']);

  it('finds each of many, and none that is not there', () => {
    for (const [number, name] of names.entries()) {
      const bytes = Buffer.from(`"${name}"`);
      expect(index.find(bytes, 1, bytes.length - 1)).toBe(number);
    }
    expect(index.names).toHaveLength(3_000);
    for (const name of ['item', 'item.3000', 'item.', '', 'Item.7']) {
      expect(index.find(Buffer.from(name), 0, name.length)).toBe(-1);
    }
  });
});

describe('checking deliveries', () => {
  function after(numbers: readonly number[], firstNumber = 0): Deliveries {
    const deliveries = new Deliveries(2, 3, firstNumber);
    for (const number of numbers) deliveries.take(1, 2, number, number * 10);
    return deliveries;
  }

  it.each([
    ['nothing wrong', [0, 1, 2, 3], { lost: 0, doubled: 0, disorder: 0 }],
    ['a hole', [0, 1, 3], { lost: 1, doubled: 0, disorder: 0 }],
    ['a hole at the start', [2, 3], { lost: 2, doubled: 0, disorder: 0 }],
    ['a repeat', [0, 1, 1, 2], { lost: 0, doubled: 1, disorder: 0 }],
    ['an old repeat', [...Array(100).keys(), 3], { lost: 0, doubled: 1, disorder: 0 }],
    ['a late one', [0, 2, 1, 3], { lost: 0, doubled: 0, disorder: 1 }],
    ['a late one that comes twice', [0, 2, 1, 1, 3], { lost: 0, doubled: 1, disorder: 1 }],
    ['a wide hole, one of it late', [0, 40, 20], { lost: 38, doubled: 0, disorder: 1 }],
  ])('finds %s', (_name, numbers, counts) => {
    expect(after(numbers)).toMatchObject(counts);
  });

  it('begins anywhere when told so, or when what was known is void', () => {
    expect(after([7, 8], -1)).toMatchObject({ lost: 0 });
    expect(after([7, 6], -1)).toMatchObject({ doubled: 1 });
    const deliveries = after([0, 1]);
    deliveries.forget(1, 2);
    deliveries.take(1, 2, 9, -1);
    expect(deliveries).toMatchObject({ lost: 0, doubled: 0 });
    expect(deliveries.offset(1, 2)).toBe(-1);
  });

  it('keeps sockets and topics apart, and the position of each', () => {
    const deliveries = after([0, 1]);
    expect(deliveries.offset(1, 2)).toBe(10);
    expect(deliveries.offset(0, 2)).toBe(-1);
    deliveries.setOffset(0, 1, 5);
    deliveries.take(0, 1, 0, 6);
    expect([deliveries.offset(0, 1), deliveries.lost, deliveries.doubled]).toEqual([6, 0, 0]);
  });

  it('looks at the offsets of a pattern only', () => {
    const deliveries = new Deliveries(1, 1, 0);
    for (const offset of [4, 9, 9, 3, 12]) deliveries.takeOffset(0, 0, offset);
    expect(deliveries).toMatchObject({ doubled: 2, lost: 0 });
  });
});

describe('latencies', () => {
  it('add up over processes as if one had taken them all', () => {
    const random = seededRandom(3);
    const all = new Latencies();
    const parts = [new Latencies(), new Latencies(), new Latencies()];
    for (let i = 0; i < 30_000; i++) {
      const us = random.int(10 ** (1 + random.int(6)));
      all.record(us);
      parts[i % 3]!.record(us);
    }
    const merged = mergeLatencies([...parts.map((part) => part.text()), '']);
    expect(merged.count).toBe(30_000);
    expect(merged.curve()).toEqual(all.curve());
    expect(merged.ms(1)).toBeGreaterThan(900);
  });

  it('keeps three digits from a microsecond to an hour, and bounds what lies beyond', () => {
    for (const us of [1, 999, 123_456, 59_000_000, 3_599_000_000]) {
      const one = new Latencies();
      one.record(us);
      expect(Math.abs(one.ms(0.5) * 1000 - us) / us).toBeLessThan(0.002);
    }
    const odd = new Latencies();
    for (const us of [-5, 0, 0.4, 1e12]) odd.record(us);
    expect(odd.count).toBe(4);
  });

  it('have nothing to tell before one was taken, or after a reset', () => {
    const none = new Latencies();
    none.record(5);
    none.reset();
    expect([none.text(), none.ms(0.5), none.curve()]).toEqual(['', NaN, []]);
  });
});

describe('pacing', () => {
  it('starts so many a second, whatever the steps of the clock', () => {
    for (const stepMs of [1, 5, 17]) {
      const pacer = new Pacer(1000, 1000, 0);
      let started = 0;
      for (let ms = 0; ms <= 2000; ms += stepMs) started += pacer.take(ms, 0, 10_000);
      expect(Math.abs(started - 2000), `steps of ${stepMs} ms`).toBeLessThanOrEqual(17);
    }
  });

  it('keeps to what may be outstanding, and does not burst after a stall', () => {
    const pacer = new Pacer(1000, 50, 0);
    expect(pacer.take(100, 20, 1000)).toBe(30);
    expect(pacer.take(200, 50, 1000)).toBe(0);
    expect(pacer.take(60_000, 0, 1000)).toBe(50);
    expect(new Pacer(1000, 500, 0).take(60_000, 0, 1000)).toBe(100);
    expect(pacer.take(61_000, 0, 3)).toBe(3);
  });

  it('comes back when it was told to, or later by its own jitter', () => {
    expect(retryDelayMs(1, 4, () => 0.999)).toBe(4000);
    expect(retryDelayMs(4, 4, () => 0.999)).toBe(7992);
    expect(retryDelayMs(1, 0, () => 0.5)).toBe(500);
    expect(retryDelayMs(20, 0, () => 0.5)).toBe(15_000);
  });
});

describe('the processes of a fleet', () => {
  const base = { urls: ['http://127.0.0.1:1'], groups: [['a']], sockets: 45_000 };

  it('hold every socket once, from addresses of their own', () => {
    const herds = planHerds({ ...base, probes: 21, napMs: 20 });
    expect(herds.map((herd) => herd.sockets)).toEqual([11, 14_993, 14_993, 14_993, 10]);
    let next = 0;
    for (const herd of herds) {
      expect(herd.first).toBe(next);
      next += herd.sockets;
    }
    expect(next).toBe(45_000);
    expect(herds.map((herd) => [herd.napMs, herd.latency])).toEqual([
      [0, true],
      [20, false],
      [20, false],
      [20, false],
      [0, true],
    ]);
    const sources = herds.flatMap((herd) => herd.sources);
    expect(new Set(sources).size).toBe(10);
  });

  it('are so many that each keeps to its descriptors, and a server that could not is refused', () => {
    const urls = [1, 2, 3].map((port) => `http://127.0.0.1:${port}`);
    const herds = planHerds({ ...base, urls, sockets: 2700 }, 1000);
    expect(herds.map((herd) => herd.sockets)).toEqual([900, 900, 900]);
    expect(() => planHerds({ ...base, urls, sockets: 2701 }, 1000)).toThrow(
      'a server would have to hold 901 sockets, and a process may hold 1000 descriptors here: ' +
        'use fewer sockets, or allow more descriptors (ulimit -n 1001)',
    );
  });

  it('of a million sockets still have addresses that exist', () => {
    const herds = planHerds({ ...base, sockets: 1_000_000 });
    expect(herds).toHaveLength(52);
    for (const source of herds.flatMap((herd) => herd.sources)) {
      expect(source).toMatch(/^127\.0\.\d{1,3}\.\d{1,3}$/);
      expect(source.split('.').every((part) => Number(part) < 255)).toBe(true);
    }
    expect(planHerds({ ...base, urls: ['http://10.0.0.1:80'] })[0]?.sources).toEqual([]);
  });
});

it('speaks frames that a node decodes', () => {
  // The acknowledgement of a direct message, in both codecs.
  const json = clientFrame(1, Buffer.from('{"type":"ack","ids":[7]}'));
  expect(decodeJsonClient(json.toString('utf8', 6))).toEqual({ ok: true, value: { type: 'ack', ids: [7] } });
  const packed = msgpackCodec.encodeClient({ type: 'ack', ids: [7] }) as Uint8Array;
  expect(msgpackCodec.decodeClient(clientFrame(2, packed).subarray(6))).toMatchObject({ ok: true });
});
