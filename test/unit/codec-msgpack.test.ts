import { pack, Unpackr } from 'msgpackr';
import { describe, expect, test } from 'vitest';
import {
  encodeMsgpackServer,
  msgpackCodec,
  msgpackPayload,
  skipValue,
  type ClientFrame,
  type Failure,
  type Result,
} from '../../protocol/mod.js';
import { concat, fromHex, toHex, utf8 } from '../support/bytes.js';

function decode(digits: string): Result<ClientFrame> {
  return msgpackCodec.decodeClient(fromHex(digits));
}

function refusal(code: Failure['code'], req?: number): unknown {
  const common = { ok: false, code, message: expect.any(String) as unknown };
  return req === undefined ? common : { ...common, req };
}

const unpackr = new Unpackr({ useRecords: false, int64AsType: 'number' });

/** The frame as an independent library reads it. */
function unpacked(encoded: string | Uint8Array): unknown {
  return unpackr.unpack(Buffer.from(encoded as Uint8Array)) as unknown;
}

const data = { format: 'msgpack', bytes: fromHex('82 a16e cf ffffffffffffffff a16e c0') } as const;

test('names its subprotocol', () => {
  expect(msgpackCodec).toMatchObject({ name: 'msgpack', subprotocol: 'topicast.v1.msgpack', binary: true });
});

describe('what is on the wire', () => {
  test('the payload stands inline, trailing absent fields are left out, nil stands in the middle', () => {
    const raw = toHex(data.bytes);
    expect(toHex(encodeMsgpackServer({ type: 'msg', topic: 'a', data }))).toBe(`9313a161${raw}`);
    expect(toHex(encodeMsgpackServer({ type: 'msg', topic: 'a', data, offset: 300 }))).toBe(
      `9413a161${raw}cd012c`,
    );
    expect(toHex(encodeMsgpackServer({ type: 'msg', topic: 'a', data, pattern: 'a' }))).toBe(
      `9513a161${raw}c0a161`,
    );
    expect(toHex(encodeMsgpackServer({ type: 'direct', data }))).toBe(`9314c0${raw}`);
    expect(toHex(encodeMsgpackServer({ type: 'pong' }))).toBe('911a');
  });

  test('an independent library reads the other frames', () => {
    const topics = [{ topic: 'a' }, { topic: 'b', epoch: 'e', offset: 2 ** 40 }, { topic: 'c', last: 5 }];
    expect(unpacked(msgpackCodec.encodeClient({ type: 'subscribe', req: 70_000, topics }))).toEqual([
      1,
      70_000,
      ['a', { topic: 'b', epoch: 'e', offset: 2 ** 40 }, { topic: 'c', last: 5 }],
    ]);
    expect(
      unpacked(
        encodeMsgpackServer({
          type: 'error',
          code: 'forbidden',
          message: 'é'.repeat(200),
          topic: 'x'.repeat(40),
        }),
      ),
    ).toEqual([22, null, 'forbidden', 'é'.repeat(200), 'x'.repeat(40)]);
    expect(unpacked(encodeMsgpackServer({ type: 'expiring', inSec: -1.5 }))).toEqual([25, -1.5]);
    const many = Array.from({ length: 70_000 }, (_, i) => i);
    expect(unpacked(msgpackCodec.encodeClient({ type: 'ack', ids: many }))).toEqual([4, many]);
  });

  test('a payload of the other format is a fault of the caller, and the next frame is whole', () => {
    const json = { format: 'json', text: '1' } as const;
    expect(() => msgpackCodec.encodeServer({ type: 'msg', topic: 'a', data: json })).toThrow(TypeError);
    expect(() => msgpackCodec.encodeClient({ type: 'publish', topic: 'a', data: json })).toThrow(TypeError);
    expect(toHex(encodeMsgpackServer({ type: 'pong' }))).toBe('911a');
  });
});

describe('what is taken', () => {
  test('frames of an independent library, fields it adds ignored', () => {
    const frame = pack([1, 7, ['a', 'b@e:3', { topic: 'c', offset: null, last: 2, more: 1 }], 'more', [1]]);
    expect(msgpackCodec.decodeClient(frame)).toEqual({
      ok: true,
      value: {
        type: 'subscribe',
        req: 7,
        topics: [{ topic: 'a' }, { topic: 'b', epoch: 'e', offset: 3 }, { topic: 'c', last: 2 }],
      },
    });
  });

  test('nil data is a payload, missing data is not', () => {
    expect(decode('94 03 05 a161 c0')).toEqual({
      ok: true,
      value: { type: 'publish', req: 5, topic: 'a', data: { format: 'msgpack', bytes: fromHex('c0') } },
    });
    expect(decode('93 03 05 a161')).toEqual(refusal('invalid_frame', 5));
  });

  test('a float that is a whole number counts as one', () => {
    expect(decode('93 06 cb3ff0000000000000 a174')).toMatchObject({ value: { req: 1, token: 't' } });
  });

  test('data is a copy, also out of a Buffer', () => {
    const frame = Buffer.from(fromHex('94 03 05 a161 c4 01 07'));
    const decoded = msgpackCodec.decodeClient(frame);
    frame.fill(0);
    expect(decoded).toMatchObject({ value: { data: { bytes: fromHex('c40107') } } });
  });
});

describe('what is refused', () => {
  test.each([
    ['nothing', ''],
    ['an empty array', '90'],
    ['a type outside the array', '90 05'],
    ['a value that is no array', '05'],
    ['a map', '81 05 c0'],
    ['a type that is a string', '91 a470696e67'],
    ['a type that is a float', '91 cb3ff8000000000000'],
    ['a type of 64 bits', '91 cfffffffffffffffff'],
    ['bytes after the frame', '91 05 c0'],
    ['a frame cut off', '92 05'],
    ['an array of four thousand million', 'ddffffffff 05'],
    ['a string of four thousand million bytes', '93 06 c0 dbffffffff 61'],
    ['the unused byte', '92 05 c1'],
  ])('%s', (_name, digits) => {
    expect(decode(digits)).toEqual(refusal('invalid_frame'));
  });

  test('an unknown type, with the number of the request', () => {
    expect(decode('92 63 07')).toEqual(refusal('unknown_type', 7));
    expect(decode('92 13 a161')).toEqual(refusal('unknown_type'));
    expect(decode('92 ff 07')).toEqual(refusal('unknown_type', 7));
  });

  test.each([
    ['a token that is bin', '93 06 04 c40174'],
    ['a token that is not UTF-8', '93 06 04 a1ff'],
    ['a topic that is a number', '94 03 04 01 c0'],
    ['an id that is a number', '95 03 04 a161 c0 01'],
    ['topics that are a map', '93 01 04 81a161a162'],
    ['a topic that is a map with a number for a topic', '93 01 04 91 81a5746f70696301'],
    ['data that is cut off', '94 03 04 a161 92c0'],
    ['data with a string that is not UTF-8', '94 03 04 a161 a2c080'],
    ['data nested too deep', `94 03 04 a161 ${'91'.repeat(65)}c0`],
  ])('%s', (_name, digits) => {
    expect(decode(digits)).toEqual(refusal('invalid_frame', 4));
  });

  test.each(['ff', 'cfffffffffffffffff', 'a131', '90', 'cb3ff8000000000000'])('a req of %s', (req) => {
    expect(decode(`93 06 ${req} a174`)).toEqual(refusal('invalid_frame'));
  });

  test('an ack of negative or fractional ids', () => {
    expect(decode('92 04 91 ff')).toEqual(refusal('invalid_frame'));
    expect(decode('92 04 91 cb3ff8000000000000')).toEqual(refusal('invalid_frame'));
  });
});

describe('skipValue', () => {
  const leads = [
    ['c0', 1],
    ['7f', 1],
    ['e0', 1],
    ['ca 00000000', 5],
    ['cb 0000000000000000', 9],
    ['cc 00', 2],
    ['cd 0000', 3],
    ['ce 00000000', 5],
    ['cf 0000000000000000', 9],
    ['d0 00', 2],
    ['d1 0000', 3],
    ['d2 00000000', 5],
    ['d3 0000000000000000', 9],
    ['d4 01 00', 3],
    ['d5 01 0000', 4],
    ['d6 01 00000000', 6],
    ['d7 01 0000000000000000', 10],
    ['d8 01 00000000000000000000000000000000', 18],
    ['c7 01 05 00', 4],
    ['c8 0001 05 00', 5],
    ['c9 00000001 05 00', 7],
    ['c4 01 ff', 3],
    ['c5 0001 ff', 4],
    ['c6 00000001 ff', 6],
    ['a1 61', 2],
    ['d9 01 61', 3],
    ['da 0001 61', 4],
    ['db 00000001 61', 6],
    ['90', 1],
    ['91 c0', 2],
    ['dc 0001 c0', 4],
    ['dd 00000001 c0', 6],
    ['80', 1],
    ['81 c0 c0', 3],
    ['de 0001 c0 c0', 5],
    ['df 00000001 c0 c0', 7],
    ['92 91 90 81 c0 90', 6],
  ] as const;

  test.each(leads)('%s is whole, and cut off anywhere it is not', (digits, length) => {
    const value = fromHex(digits);
    const within = concat(fromHex('ff'), value, fromHex('c1'));
    expect(skipValue(within, 1)).toBe(1 + length);
    for (let end = 0; end < length; end++) expect(skipValue(value.subarray(0, end), 0)).toBe(-1);
  });

  test('depth is bounded, not by the stack', () => {
    const nested = (depth: number): Uint8Array => concat(new Uint8Array(depth - 1).fill(0x91), fromHex('90'));
    expect(skipValue(nested(64), 0)).toBe(64);
    expect(skipValue(nested(65), 0)).toBe(-1);
    expect(skipValue(nested(1_000_000), 0, Infinity)).toBe(1_000_000);
  });

  test.each(['héllo ✓ 😀', ''])('the string %j is UTF-8', (text) => {
    const bytes = utf8(text);
    expect(skipValue(concat(fromHex('d9'), new Uint8Array([bytes.length]), bytes), 0)).toBe(2 + bytes.length);
  });

  test.each([
    '80',
    'c3',
    'c0af',
    'e08080',
    'eda080',
    'f0808080',
    'f4908080',
    'f5808080',
    'e282',
    'c328',
    'ff',
  ])('the string %s is not', (digits) => {
    const bytes = fromHex(digits);
    // More bytes follow, so that a sequence cut off by the end of its string could borrow from them.
    const value = concat(fromHex('d9'), new Uint8Array([bytes.length]), bytes, fromHex('80808080'));
    expect(skipValue(value, 0)).toBe(-1);
  });
});

test('a payload is exactly one value', () => {
  expect(msgpackPayload(fromHex('93 01 02 03'))).toEqual({
    ok: true,
    value: { format: 'msgpack', bytes: fromHex('93010203') },
  });
  expect(msgpackPayload(fromHex('93 01 02'))).toEqual(refusal('invalid_frame'));
  expect(msgpackPayload(fromHex('01 02'))).toEqual(refusal('invalid_frame'));
  expect(msgpackPayload(fromHex(''))).toEqual(refusal('invalid_frame'));
});
