import { msgpackCodec } from '../protocol/codec-msgpack.js';
import { MsgpackExtension, readValue } from '../protocol/msgpack-read.js';
import { fitsMsgpackInteger, MsgpackWriter } from '../protocol/msgpack-write.js';
import { grammarLimits } from '../protocol/limits.js';
import { failure, success } from '../protocol/result.js';
import type { WireCodec } from './codec.js';

export { MsgpackExtension };

const writer = new MsgpackWriter();

/**
 * MessagePack: `Uint8Array` is binary data both ways, `bigint` an integer of 64 bits, `Map` keeps keys that are no strings. A map of string
 * keys comes as a plain object, an extension as `MsgpackExtension`. `toJSON` of an object counts, as in JSON, and so does its
 * silence about `undefined`.
 */
export const msgpack: WireCodec = {
  subprotocol: msgpackCodec.subprotocol,
  payload: (data) => {
    writer.start();
    write(data, 0);
    return { format: 'msgpack', bytes: writer.finish() };
  },
  encode: (frame) => msgpackCodec.encodeClient(frame),
  decode: (message) => {
    const bytes = bytesOf(message);
    if (bytes === undefined) return failure('invalid_frame', 'not a frame: not binary');
    const frame = msgpackCodec.decodeServer(bytes);
    if (!frame.ok) return frame;
    const payload = 'data' in frame.value ? frame.value.data : undefined;
    const data = payload?.format === 'msgpack' ? plain(readValue(payload.bytes, 0)) : undefined;
    return success({ frame: frame.value, data });
  },
};

function bytesOf(message: unknown): Uint8Array | undefined {
  if (message instanceof ArrayBuffer) return new Uint8Array(message);
  return message instanceof Uint8Array ? message : undefined;
}

function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (!(value instanceof Map)) return value;
  const entries = Array.from(
    value as ReadonlyMap<unknown, unknown>,
    ([key, of]) => [key, plain(of)] as const,
  );
  const named = entries.every(([key]) => typeof key === 'string');
  // `fromEntries` defines own properties: a key may well be `__proto__`.
  return named ? Object.fromEntries(entries as [string, unknown][]) : new Map(entries);
}

function write(value: unknown, depth: number): void {
  if (depth > grammarLimits.payloadDepthMax) {
    throw new TypeError(`nests deeper than ${grammarLimits.payloadDepthMax}, or in a cycle`);
  }
  if (value === null || value === undefined) writer.nil();
  else if (typeof value === 'string') writer.string(value);
  else if (typeof value === 'number') writer.number(value);
  else if (typeof value === 'boolean') writer.boolean(value);
  else if (typeof value === 'bigint' && fitsMsgpackInteger(value)) writer.bigint(value);
  else if (typeof value === 'object') writeObject(value, depth);
  else throw new TypeError(`MessagePack has no value for a ${typeof value}`);
}

function writeObject(value: object, depth: number): void {
  if (value instanceof Uint8Array || value instanceof ArrayBuffer) writeBinary(new Uint8Array(value));
  else if (hasToJson(value)) write(value.toJSON(), depth + 1);
  else if (Array.isArray(value)) {
    writer.array(value.length);
    for (const element of value as readonly unknown[]) write(element, depth + 1);
  } else {
    const all: [unknown, unknown][] =
      value instanceof Map ? [...(value as ReadonlyMap<unknown, unknown>)] : Object.entries(value);
    const entries = all.filter(([, of]) => of !== undefined && typeof of !== 'function');
    writer.map(entries.length);
    for (const [key, of] of entries) {
      write(key, depth + 1);
      write(of, depth + 1);
    }
  }
}

function hasToJson(value: object): value is { toJSON(): unknown } {
  return 'toJSON' in value && typeof value.toJSON === 'function';
}

/** bin 32 whatever the length: valid, and readers do not care. */
function writeBinary(bytes: Uint8Array): void {
  const head = new DataView(new ArrayBuffer(5));
  head.setUint8(0, 0xc6);
  head.setUint32(1, bytes.length);
  writer.raw(new Uint8Array(head.buffer));
  writer.raw(bytes);
}
