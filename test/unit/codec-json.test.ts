import { describe, expect, test } from 'vitest';
import {
  decodeJsonServer,
  encodeJsonServer,
  jsonCodec,
  type ClientFrame,
  type Failure,
  type Result,
} from '../../protocol/mod.js';
import { concat, utf8 } from '../support/bytes.js';

function decode(text: string): Result<ClientFrame> {
  return jsonCodec.decodeClient(utf8(text));
}

function refusal(code: Failure['code'], req?: number): unknown {
  const common = { ok: false, code, message: expect.any(String) as unknown };
  return req === undefined ? common : { ...common, req };
}

test('names its subprotocol', () => {
  expect(jsonCodec).toMatchObject({ name: 'json', subprotocol: 'topicast.v1.json', binary: false });
});

describe('what is on the wire', () => {
  test('the payload stands in the frame as it was written, last', () => {
    const data = { format: 'json', text: '{"n": 9007199254740993, "n":1.0}' } as const;
    expect(encodeJsonServer({ type: 'msg', topic: 'item.1', data, offset: 7, pattern: 'item.*' })).toBe(
      '{"type":"msg","topic":"item.1","offset":7,"pattern":"item.*","data":{"n": 9007199254740993, "n":1.0}}',
    );
    expect(encodeJsonServer({ type: 'msg', topic: 'item.1', data })).toBe(
      '{"type":"msg","topic":"item.1","data":{"n": 9007199254740993, "n":1.0}}',
    );
    expect(encodeJsonServer({ type: 'direct', id: 3, data })).toBe(
      '{"type":"direct","id":3,"data":{"n": 9007199254740993, "n":1.0}}',
    );
    expect(jsonCodec.encodeClient({ type: 'publish', req: 1, topic: 'a', data, id: 'x' })).toBe(
      '{"type":"publish","req":1,"topic":"a","id":"x","data":{"n": 9007199254740993, "n":1.0}}',
    );
  });

  test('a plain topic is a string, one with a position an object', () => {
    const topics = [{ topic: 'a' }, { topic: 'b', epoch: 'e', offset: 1 }, { topic: 'c', last: 5 }];
    expect(jsonCodec.encodeClient({ type: 'subscribe', topics })).toBe(
      '{"type":"subscribe","topics":["a",{"topic":"b","epoch":"e","offset":1},{"topic":"c","last":5}]}',
    );
  });

  test('a payload of the other format is a fault of the caller', () => {
    const data = { format: 'msgpack', bytes: new Uint8Array([0xc0]) } as const;
    expect(() => jsonCodec.encodeServer({ type: 'msg', topic: 'a', data })).toThrow(TypeError);
    expect(() => jsonCodec.encodeClient({ type: 'publish', topic: 'a', data })).toThrow(TypeError);
  });
});

describe('what is taken', () => {
  test('the last data, raw, wherever it stands and however its key is escaped', () => {
    expect(
      decode('{"data":1,"\\u0064ata": [1.0, 12345678901234567890] ,"topic":"a","type":"publish"}'),
    ).toEqual({
      ok: true,
      value: { type: 'publish', topic: 'a', data: { format: 'json', text: '[1.0, 12345678901234567890]' } },
    });
  });

  test('data inside another field is not the data', () => {
    expect(decode('{"type":"publish","topic":"a","x":{"data":1},"req":5}')).toEqual(
      refusal('invalid_frame', 5),
    );
  });

  test('data may be null', () => {
    expect(decode('{"type":"publish","topic":"a","data":null}')).toMatchObject({
      value: { data: { format: 'json', text: 'null' } },
    });
  });

  test('topics in all forms', () => {
    const topics = '["a","b@e:7",{"topic":"c","epoch":"e","offset":0},{"topic":"d","last":3,"more":1},"?@x"]';
    expect(decode(`{"type":"subscribe","topics":${topics}}`)).toEqual({
      ok: true,
      value: {
        type: 'subscribe',
        topics: [
          { topic: 'a' },
          { topic: 'b', epoch: 'e', offset: 7 },
          { topic: 'c', epoch: 'e', offset: 0 },
          { topic: 'd', last: 3 },
          { topic: '?@x' },
        ],
      },
    });
  });

  test('unknown fields are ignored, null is absent', () => {
    expect(decode('{"type":"ping","req":null,"x":[1]}')).toEqual({ ok: true, value: { type: 'ping' } });
    expect(decode('{"type":"auth","req":null,"token":"t","x":1}')).toEqual({
      ok: true,
      value: { type: 'auth', token: 't' },
    });
  });

  test('an error code of a later version reads as internal', () => {
    expect(decodeJsonServer('{"type":"error","req":1,"code":"brand_new","message":"m"}')).toMatchObject({
      value: { code: 'internal', req: 1 },
    });
  });

  test('a namespace called __proto__ is a key like any other', () => {
    const frame = decodeJsonServer('{"type":"pong","floors":{"__proto__":"e:1","a":"e:2"}}');
    expect(frame.ok && frame.value.type === 'pong' && Object.entries(frame.value.floors ?? {})).toEqual([
      ['__proto__', 'e:1'],
      ['a', 'e:2'],
    ]);
  });
});

describe('what is refused', () => {
  test.each([
    '',
    'x',
    '[]',
    'null',
    '"ping"',
    '{}',
    '{"type":1}',
    '{"type":"ping"',
    '{"__proto__":{"type":"ping"}}',
  ])('%j is no frame', (text) => {
    expect(decode(text)).toEqual(refusal('invalid_frame'));
  });

  test('bytes that are not UTF-8', () => {
    const frame = concat(utf8('{"type":"auth","token":"'), new Uint8Array([0xff]), utf8('"}'));
    expect(jsonCodec.decodeClient(frame)).toEqual(refusal('invalid_frame'));
  });

  test.each(['msg', 'constructor', '__proto__', 'toString', ''])('type %j is unknown to a server', (type) => {
    expect(decode(JSON.stringify({ type, req: 9 }))).toEqual(refusal('unknown_type', 9));
    expect(decode(JSON.stringify({ type, req: -9 }))).toEqual(refusal('unknown_type'));
  });

  test.each([
    '"type":"subscribe"',
    '"type":"subscribe","topics":"a"',
    '"type":"subscribe","topics":[1]',
    '"type":"subscribe","topics":[["a"]]',
    '"type":"subscribe","topics":[null]',
    '"type":"subscribe","topics":[{"epoch":"e"}]',
    '"type":"subscribe","topics":[{"topic":"a","epoch":1}]',
    '"type":"subscribe","topics":[{"topic":"a","offset":-1}]',
    '"type":"subscribe","topics":[{"topic":"a","offset":1.5}]',
    '"type":"subscribe","topics":[{"topic":"a","last":"1"}]',
    '"type":"unsubscribe","topics":[{"topic":"a"}]',
    '"type":"publish","topic":"a"',
    '"type":"publish","data":1',
    '"type":"publish","topic":1,"data":1',
    '"type":"publish","topic":"a","data":1,"id":1',
    '"type":"publish","topic":"a","data":1,"id":""',
    '"type":"publish","topic":"a","data":1,"id":"a\\r\\nb"',
    `"type":"publish","topic":"a","data":1,"id":"${'x'.repeat(129)}"`,
    `"type":"publish","topic":"a","data":${'['.repeat(65)}${']'.repeat(65)}`,
    '"type":"auth"',
    '"type":"auth","token":{}',
  ])('%s', (fields) => {
    expect(decode(`{${fields},"req":4}`)).toEqual(refusal('invalid_frame', 4));
  });

  test.each(['-1', '1.5', '"1"', '9007199254740992', '[]'])('a req of %s', (req) => {
    expect(decode(`{"type":"auth","token":"t","req":${req}}`)).toEqual(refusal('invalid_frame'));
  });

  test.each([
    '{"type":"ack"}',
    '{"type":"ack","ids":[1,-1]}',
    '{"type":"ack","ids":[1.5]}',
    '{"type":"ack","ids":{}}',
  ])('%s', (text) => {
    expect(decode(text)).toEqual(refusal('invalid_frame'));
  });

  test.each([
    '{"type":"msg","topic":"a"}',
    '{"type":"msg","topic":"a","data":1,"offset":"1"}',
    '{"type":"subscribed","topics":[{"topic":"a","epoch":"e"}]}',
    '{"type":"subscribed","topics":[{"topic":"a","error":1}]}',
    '{"type":"gap","topic":"a","from":1}',
    '{"type":"pong","floors":["e:1"]}',
    '{"type":"pong","floors":{"a":1}}',
    '{"type":"published","topic":"a","duplicate":1}',
    '{"type":"bye","code":"4000","reason":"r"}',
  ])('%s by a client', (text) => {
    expect(decodeJsonServer(text)).toEqual(refusal('invalid_frame'));
  });

  test('the message names the field and what it must be, and not what it was', () => {
    expect(decode('{"type":"auth","req":1,"token":["secret"]}')).toMatchObject({
      message: 'auth: token must be a string',
    });
  });
});
