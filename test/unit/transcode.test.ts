import fc from 'fast-check';
import { pack, Unpackr } from 'msgpackr';
import { describe, expect, test } from 'vitest';
import { jsonPayload, msgpackPayload, transcode, type Payload, type Result } from '../../protocol/mod.js';
import { concat, fromHex, toHex } from '../support/bytes.js';

const unpackr = new Unpackr({ useRecords: false, int64AsType: 'number' });

function jsonOf(digits: string): string {
  return textOf(transcode(must(msgpackPayload(fromHex(digits))), 'json'));
}

function msgpackOf(text: string): string {
  return toHex(bytesOf(transcode(must(jsonPayload(text)), 'msgpack')));
}

test('a payload already in the format is the very same', () => {
  const json = must(jsonPayload('[1.0]'));
  const msgpack = must(msgpackPayload(fromHex('c0')));
  expect(transcode(json, 'json')).toBe(json);
  expect(transcode(msgpack, 'msgpack')).toBe(msgpack);
});

describe('MessagePack to JSON', () => {
  test.each([
    ['nil', 'c0', 'null'],
    ['booleans', '92 c2 c3', '[false,true]'],
    ['small integers', '96 00 7f ff e0 cc ff d0 80', '[0,127,-1,-32,255,-128]'],
    ['16 and 32 bits', '94 cdffff d18000 ceffffffff d280000000', '[65535,-32768,4294967295,-2147483648]'],
    ['uint64', 'cf ffffffffffffffff', '18446744073709551615'],
    ['uint64 just beyond 2^53', 'cf 0020000000000001', '9007199254740993'],
    ['int64', 'd3 8000000000000000', '-9223372036854775808'],
    ['int64 within a double', 'd3 fffffffffffffffe', '-2'],
    ['float 32', 'ca 3fc00000', '1.5'],
    ['float 64', 'cb 3fb999999999999a', '0.1'],
    ['a large float', 'cb 444b1ae4d6e2ef50', '1e+21'],
    ['minus zero', 'cb 8000000000000000', '-0'],
    ['NaN and infinities', '93 cb7ff8000000000000 cb7ff0000000000000 caff800000', '[null,null,null]'],
    ['text', 'a5 22 5c 0a c3a9', '"\\"\\\\\\né"'],
    ['bin', 'c4 04 fbff0001', '"+/8AAQ=="'],
    ['empty bin', 'c4 00', '""'],
    ['timestamp 32', 'd6 ff 00000001', '"1970-01-01T00:00:01.000Z"'],
    ['timestamp 64 with milliseconds', 'd7 ff 1dcd6500 00000001', '"1970-01-01T00:00:01.125Z"'],
    ['timestamp 64 with nanoseconds', 'd7 ff 00000004 00000001', '"1970-01-01T00:00:01.000000001Z"'],
    ['timestamp 96 before 1970', 'c7 0c ff 00000000 ffffffffffffffff', '"1969-12-31T23:59:59.000Z"'],
    ['timestamp out of range', 'c7 0c ff 00000000 7fffffffffffffff', '"AAAAAH//////////"'],
    ['timestamp with too many nanoseconds', 'c7 0c ff 3b9aca00 0000000000000000', '"O5rKAAAAAAAAAAAA"'],
    ['another extension', 'd4 01 ff', '"/w=="'],
    [
      'keys',
      '86 01 00 c3 00 c0 00 cbbff8000000000000 00 c401ff 00 cfffffffffffffffff 00',
      '{"1":0,"true":0,"null":0,"-1.5":0,"/w==":0,"18446744073709551615":0}',
    ],
    ['a key that is an array', '81 91 01 00', '{"kQE=":0}'],
    ['keys that are one text, the last wins', '82 01 00 a131 02', '{"1":2}'],
    ['__proto__', '81 a95f5f70726f746f5f5f 01', '{"__proto__":1}'],
    ['nothing inside', '92 90 80', '[[],{}]'],
  ])('%s', (_name, digits, text) => {
    expect(jsonOf(digits)).toBe(text);
    expect(jsonPayload(text).ok).toBe(true);
  });

  test('bin of any length is the base64 that Node writes', () => {
    for (const length of [1, 8191, 8192, 8193, 70_000]) {
      const body = Buffer.alloc(length, 'topicast ✓');
      const payload = must(msgpackPayload(pack(body)));
      expect(textOf(transcode(payload, 'json'))).toBe(JSON.stringify(body.toString('base64')));
    }
  });

  test('keys within keys do not grow the text', () => {
    const levels = 60;
    const bytes = concat(
      new Uint8Array(levels).fill(0x81),
      fromHex('a122'),
      new Uint8Array(levels).fill(0x22),
    );
    const text = textOf(transcode(must(msgpackPayload(bytes)), 'json'));
    expect(text.length).toBeLessThan(2 * bytes.length);
    expect(jsonPayload(text).ok).toBe(true);
  });
});

describe('JSON to MessagePack', () => {
  test.each([
    ['null', 'c0'],
    [' [ true , false ] ', '92c3c2'],
    ['127', '7f'],
    ['-32', 'e0'],
    ['-33', 'd0df'],
    ['255', 'ccff'],
    ['65535', 'cdffff'],
    ['-32768', 'd18000'],
    ['4294967295', 'ceffffffff'],
    ['4294967296', 'cf0000000100000000'],
    ['-2147483649', 'd3ffffffff7fffffff'],
    ['9007199254740993', 'd30020000000000001'],
    ['-9223372036854775808', 'd38000000000000000'],
    ['18446744073709551615', 'cfffffffffffffffff'],
    ['18446744073709551616', 'cb43f0000000000000'],
    ['-9223372036854775809', 'cbc3e0000000000000'],
    ['1.0', 'cb3ff0000000000000'],
    ['1e2', 'cb4059000000000000'],
    ['-0', 'cb8000000000000000'],
    ['"\\u00e9\\n"', 'a3c3a90a'],
    ['"\\ud800"', 'a3efbfbd'],
    ['{"a":{"b":[]},"c":"}"}', '82a16181a16290a163a17d'],
    ['{"a":1,"\\u0061":2}', '81a16102'],
    ['[[],{}]', '929080'],
  ])('%s', (text, digits) => {
    expect(msgpackOf(text)).toBe(digits);
    expect(msgpackPayload(fromHex(digits)).ok).toBe(true);
  });

  test('an independent library reads the same values', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom('', '  '), (value, space) => {
        const text = JSON.stringify(value, null, space);
        const read = unpackr.unpack(fromHex(msgpackOf(text))) as unknown;
        // The library renames this key on its side.
        fc.pre(!text.includes('__proto__'));
        expect(JSON.stringify(read)).toBe(JSON.stringify(JSON.parse(text)));
      }),
    );
  });

  test('strings and containers of every size of head', () => {
    for (const length of [15, 16, 31, 32, 255, 256, 65_535, 65_536]) {
      const value = { text: 'é'.repeat(length), list: Array.from({ length }, () => 0) };
      expect(unpackr.unpack(fromHex(msgpackOf(JSON.stringify(value))))).toEqual(value);
    }
  });
});

test('integers of 64 bits keep every digit both ways', () => {
  const integer = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }).map(String);
  fc.assert(
    fc.property(integer, (text) => {
      expect(jsonOf(msgpackOf(text))).toBe(text);
    }),
  );
});

test('the deepest payload that is taken crosses both ways', () => {
  const text = '['.repeat(64) + ']'.repeat(64);
  const digits = `${'91'.repeat(63)}90`;
  expect(msgpackOf(text)).toBe(digits);
  expect(jsonOf(digits)).toBe(text);
});

function must<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.message);
  return result.value;
}

function textOf(payload: Payload): string {
  return payload.format === 'json' ? payload.text : expect.unreachable();
}

function bytesOf(payload: Payload): Uint8Array {
  return payload.format === 'msgpack' ? payload.bytes : expect.unreachable();
}
