import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  clientFrameNumbers,
  errorCodes,
  jsonCodec,
  jsonPayload,
  msgpackCodec,
  msgpackPayload,
  serverFrameNumbers,
  transcode,
  type ClientFrame,
  type Codec,
  type Encoded,
  type Payload,
  type Result,
  type ServerFrame,
} from '../../protocol/mod.js';
import { arbitraryClientFrame, arbitraryServerFrame } from '../support/arbitrary-frames.js';
import { concat, fromHex, utf8 } from '../support/bytes.js';
import { seededRandom, type Random } from '../support/random.js';

/** Run again with `FUZZ_SEED=<the seed printed>`. */
const seed = Number(process.env['FUZZ_SEED'] ?? Date.now() % 2 ** 31);
const framesPerCase = 10_000;
const known: ReadonlySet<string> = new Set(errorCodes);
const types: ReadonlySet<string> = new Set([
  ...Object.keys(clientFrameNumbers),
  ...Object.keys(serverFrameNumbers),
]);

type AnyFrame = ClientFrame | ServerFrame;
type Generator = (random: Random, valid: readonly Uint8Array[]) => Uint8Array;

/** Pieces that take a decoder somewhere: lengths that lie, nesting, escapes, keys of prototypes. */
const pieces = [
  ...[
    'ddffffffff',
    'dfffffffff',
    'dbffffffff',
    'c6ffffffff',
    'c9ffffffff01',
    'c1',
    'dc0010',
    'cfffffffffffffffff',
  ].map(fromHex),
  ...['cb7ff8000000000000', 'd6ff00000000', 'eda080', 'a95f5f70726f746f5f5f'].map(fromHex),
  ...[
    '{',
    '}',
    '[',
    ']',
    '"',
    '\\',
    ',',
    ':',
    '\\u',
    '"data":',
    '"type":"publish",',
    '1e999',
    '9007199254740993',
  ].map(utf8),
  ...['"__proto__":{"type":"ping"},', 'null', '\ufeff', '\u2028', '['.repeat(80), '{"a":'.repeat(80)].map(
    utf8,
  ),
  new Uint8Array(80).fill(0x91),
  new Uint8Array(160).fill(0x81),
];

const words = [
  'type',
  'req',
  'topics',
  'topic',
  'data',
  'id',
  'ids',
  'token',
  'epoch',
  'offset',
  'last',
  'error',
  'floors',
];

const generators: Readonly<Record<string, Generator>> = {
  'random bytes': (random) => random.bytes(random.int(64)),
  'mutated frames': (random, valid) => mutate(random, random.pick(valid)),
  'truncated frames': (random, valid) => {
    const frame = random.pick(valid);
    return frame.subarray(0, random.int(frame.length));
  },
  'spliced frames': (random, valid) => {
    const [head, tail] = [random.pick(valid), random.pick(valid)];
    return concat(head.subarray(0, random.int(head.length)), tail.subarray(random.int(tail.length)));
  },
};

describe.each<Codec>([jsonCodec, msgpackCodec])(`$name, seed ${seed}`, (codec) => {
  const valid = {
    client: fc
      .sample(arbitraryClientFrame(codec.name), { numRuns: 400, seed })
      .map((frame) => wire(codec.encodeClient(frame))),
    server: fc
      .sample(arbitraryServerFrame(codec.name), { numRuns: 400, seed })
      .map((frame) => wire(codec.encodeServer(frame))),
  };
  const shaped: Generator =
    codec.name === 'json'
      ? (random) => utf8(JSON.stringify(randomFrame(random)))
      : (random) =>
          bytesOf(
            transcode(must(jsonPayload(JSON.stringify(Object.values(randomFrame(random))))), 'msgpack'),
          );

  describe.each(['client', 'server'] as const)('%s', (side) => {
    const decode = (bytes: Uint8Array): Result<AnyFrame> =>
      side === 'client' ? codec.decodeClient(bytes) : codec.decodeServer(bytes);
    const encode = (frame: AnyFrame): Encoded =>
      side === 'client' ? codec.encodeClient(frame as ClientFrame) : codec.encodeServer(frame as ServerFrame);

    test.each(Object.entries({ ...generators, 'frames of random shape': shaped }))(
      '%s',
      (_name, generate) => {
        const random = seededRandom(seed);
        let taken = 0;
        for (let i = 0; i < framesPerCase; i++) {
          const bytes = generate(random, valid[side]);
          const fault = findFault(bytes, decode, encode);
          if (fault !== undefined) {
            expect.fail(`seed ${seed}, frame ${i}, ${Buffer.from(bytes).toString('hex')}: ${fault}`);
          }
          if (decode(bytes).ok) taken++;
        }
        expect(taken).toBeLessThan(framesPerCase);
      },
    );
  });
});

/** What is wrong with the answer to these bytes, if anything. */
function findFault(
  bytes: Uint8Array,
  decode: (bytes: Uint8Array) => Result<AnyFrame>,
  encode: (frame: AnyFrame) => Encoded,
): string | undefined {
  try {
    const result = decode(bytes);
    if (!result.ok) return findFailureFault(result);
    const frame = result.value;
    if (!types.has(frame.type)) return `a frame of type ${frame.type}`;
    if ('data' in frame && !isWhole(frame.data)) return 'a payload that is not one valid value';
    const again = decode(wire(encode(frame)));
    return JSON.stringify(again) === JSON.stringify(result)
      ? undefined
      : 'the frame does not survive encoding';
  } catch (cause) {
    return `threw ${String(cause)}`;
  }
}

function findFailureFault(result: Exclude<Result<AnyFrame>, { ok: true }>): string | undefined {
  if (!known.has(result.code)) return `an unknown code ${result.code}`;
  if (result.message === '' || result.message.length > 200) return 'a message of a wrong length';
  const isRequest = result.req === undefined || (Number.isSafeInteger(result.req) && result.req >= 0);
  return isRequest ? undefined : `a request number of ${String(result.req)}`;
}

/** Crosses to the other codec too, which must be possible for whatever a decoder took. */
function isWhole(data: Payload): boolean {
  const crossed = transcode(data, data.format === 'json' ? 'msgpack' : 'json');
  return [data, crossed].every((payload) => {
    const checked = payload.format === 'json' ? jsonPayload(payload.text) : msgpackPayload(payload.bytes);
    return checked.ok;
  });
}

function mutate(random: Random, frame: Uint8Array): Uint8Array {
  let bytes: Uint8Array = new Uint8Array(frame);
  for (let edits = 1 + random.int(3); edits > 0; edits--) {
    const at = random.int(bytes.length);
    if (random.int(3) === 0) {
      const end = Math.min(bytes.length, at + random.int(4));
      bytes = concat(bytes.subarray(0, at), random.pick(pieces), bytes.subarray(end));
    } else {
      bytes[at] = random.int(2) === 0 ? random.int(256) : (bytes[at] ?? 0) ^ (1 << random.int(8));
    }
  }
  return bytes;
}

/** An object that looks like a frame: known names, values of any kind. */
function randomFrame(random: Random): Record<string, unknown> {
  const type = random.int(8) === 0 ? randomValue(random, 1) : random.pick([...types]);
  const frame: Record<string, unknown> = { type: random.int(2) === 0 ? type : 1 + random.int(28) };
  for (let fields = random.int(6); fields > 0; fields--) frame[random.pick(words)] = randomValue(random, 3);
  return frame;
}

function randomValue(random: Random, depth: number): unknown {
  switch (random.int(depth > 0 ? 9 : 7)) {
    case 0:
      return null;
    case 1:
      return random.int(2) === 0;
    case 2:
      return random.int(1000);
    case 3:
      return (random.int(2000) - 1000) * 10 ** random.int(20);
    case 4:
    case 5:
      return random.pick([
        '',
        'a',
        'item.1',
        'a@e:1',
        'a@',
        'internal',
        '__proto__',
        '\ud800',
        'é'.repeat(130),
      ]);
    case 6:
      return random.int(100) / 7;
    case 7:
      return Array.from({ length: random.int(4) }, () => randomValue(random, depth - 1));
    default:
      return Object.fromEntries(
        Array.from({ length: random.int(4) }, () => [random.pick(words), randomValue(random, depth - 1)]),
      );
  }
}

function wire(encoded: Encoded): Uint8Array {
  return typeof encoded === 'string' ? utf8(encoded) : encoded;
}

function bytesOf(payload: Payload): Uint8Array {
  return payload.format === 'msgpack' ? payload.bytes : expect.unreachable();
}

function must<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.message);
  return result.value;
}
