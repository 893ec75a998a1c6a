import fc from 'fast-check';
import { pack } from 'msgpackr';
import {
  errorCodes,
  jsonPayload,
  msgpackPayload,
  type ClientFrame,
  type Payload,
  type PayloadFormat,
  type ServerFrame,
} from '../../protocol/mod.js';

/** Frames of every type for property tests, with payloads of one format. */

const offset = fc.oneof(fc.nat(300), fc.maxSafeNat());
const seconds = fc.oneof(fc.nat(100_000), fc.double({ noNaN: true, noDefaultInfinity: true, min: 0.001 }));
const token = fc.string({
  unit: fc.constantFrom('a', 'B', '7', '_', ':', '=', '-'),
  minLength: 1,
  maxLength: 12,
});
const topic = fc.array(token, { minLength: 1, maxLength: 4 }).map((tokens) => tokens.join('.'));
const epoch = fc.string({ unit: fc.constantFrom('k', 'Z', '0', '_', '-'), minLength: 1, maxLength: 32 });
const anyText = fc.string({ unit: 'binary', maxLength: 40 });
const messageId = fc.string({
  unit: fc.constantFrom('a', '1', '-', ' ', '"', 'é'),
  minLength: 1,
  maxLength: 128,
});

/** JSON as people write it: white space inside, numbers no double holds, escapes, keys given twice. */
const jsonText = fc.oneof(
  fc.json(),
  fc.json().map((text) => JSON.stringify(JSON.parse(text), null, 2)),
  fc.bigInt().map(String),
  fc.constantFrom(
    'null',
    '1.0',
    '-0',
    '1e400',
    '"\\ud800"',
    '{"a":1,"a":2}',
    '{ "data" : [ 9007199254740993 ] }',
    '"}\\\\\\""',
    '["\\\\",{"]":"["}]',
    '{"__proto__":{"x":1}}',
  ),
);

const msgpackBytes = fc.oneof(
  fc.jsonValue().map((value) => new Uint8Array(pack(value))),
  fc
    .constantFrom(
      'c0',
      'cf ffffffffffffffff',
      'd3 8000000000000000',
      'c4 03 010203',
      'd6 ff 00000000',
      '82 01 c3 c2 93 01 02 03',
    )
    .map((digits) => new Uint8Array(Buffer.from(digits.replaceAll(' ', ''), 'hex'))),
);

export function arbitraryPayload(format: PayloadFormat): fc.Arbitrary<Payload> {
  if (format === 'json') return jsonText.map((text) => must(jsonPayload(text)));
  return msgpackBytes.map((bytes) => must(msgpackPayload(bytes)));
}

export function arbitraryClientFrame(format: PayloadFormat): fc.Arbitrary<ClientFrame> {
  const request = record(['topic'], { topic, epoch, offset, last: offset });
  return fc.oneof(
    frame('subscribe', ['topics'], { req: offset, topics: fc.array(request, { maxLength: 20 }) }),
    frame('unsubscribe', ['topics'], { req: offset, topics: fc.array(topic) }),
    frame('publish', ['topic', 'data'], {
      req: offset,
      topic: anyText,
      data: arbitraryPayload(format),
      id: messageId,
    }),
    frame('ack', ['ids'], { ids: fc.array(offset) }),
    frame('ping', [], {}),
    frame('auth', ['token'], { req: offset, token: anyText }),
  ) as fc.Arbitrary<ClientFrame>;
}

export function arbitraryServerFrame(format: PayloadFormat): fc.Arbitrary<ServerFrame> {
  const data = arbitraryPayload(format);
  const code = fc.constantFrom(...errorCodes);
  const subscribed = fc.oneof(
    record(['topic', 'epoch', 'offset', 'recovered'], { topic, epoch, offset, recovered: fc.boolean() }),
    record(['topic'], { topic }),
    record(['topic', 'error'], { topic: anyText, error: code }),
  );
  const floors = fc.dictionary(fc.oneof(token, fc.constant('__proto__')), anyText, { noNullPrototype: true });
  return fc.oneof(
    frame('welcome', ['session', 'node', 'pingSec', 'idleSec'], {
      session: anyText,
      node: anyText,
      pingSec: seconds,
      idleSec: seconds,
      expiresInSec: seconds,
      degraded: fc.array(anyText),
    }),
    frame('subscribed', ['topics'], { req: offset, topics: fc.array(subscribed, { maxLength: 20 }) }),
    frame('unsubscribed', ['topics'], { req: offset, topics: fc.array(topic), reason: anyText }),
    frame('msg', ['topic', 'data'], { topic: anyText, data, offset, pattern: anyText }),
    frame('direct', ['data'], { id: offset, data }),
    frame('published', ['topic'], { req: offset, topic, offset, epoch, duplicate: fc.boolean() }),
    frame('error', ['code', 'message'], { req: offset, code, message: anyText, topic: anyText }),
    frame('gap', ['topic', 'from', 'to'], { topic, from: offset, to: offset }),
    frame('resync', ['topics'], { topics: fc.array(topic) }),
    frame('expiring', ['inSec'], { inSec: seconds }),
    frame('pong', [], { floors }),
    frame('bye', ['code', 'reason'], {
      code: fc.integer({ min: 4000, max: 4999 }),
      reason: anyText,
      retryMs: seconds,
    }),
  ) as fc.Arbitrary<ServerFrame>;
}

type Fields = Record<string, fc.Arbitrary<unknown>>;

function frame(type: string, required: readonly string[], fields: Fields): fc.Arbitrary<unknown> {
  return record(['type', ...required], { type: fc.constant(type), ...fields });
}

function record(required: readonly string[], fields: Fields): fc.Arbitrary<Record<string, unknown>> {
  return fc.record(fields, { requiredKeys: [...required], noNullPrototype: true });
}

function must(payload: { ok: true; value: Payload } | { ok: false; message: string }): Payload {
  if (!payload.ok) throw new Error(payload.message);
  return payload.value;
}
