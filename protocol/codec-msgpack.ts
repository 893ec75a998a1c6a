import type { Codec } from './codec.js';
import { readClientFrame, readRequestNumber, readServerFrame, type FrameReader } from './frame-shapes.js';
import {
  clientFrameNumbers,
  frameFields,
  serverFrameNumbers,
  type ClientFrame,
  type ClientFrameType,
  type ServerFrame,
  type ServerFrameType,
} from './frames.js';
import { readValue } from './msgpack-read.js';
import { arrayHead, skipValue } from './msgpack-scan.js';
import { MsgpackWriter } from './msgpack-write.js';
import { copyMsgpack } from './payload-msgpack.js';
import type { Payload } from './payload.js';
import { failure, success, type Result } from './result.js';
import { topicRequestToWire } from './topic-request.js';

type FrameType = ClientFrameType | ServerFrameType;
type TypesByNumber = ReadonlyMap<unknown, FrameType>;

/** Frames as MessagePack arrays. A payload's bytes stand inline, as any value would, and are copied as they are. */
export const msgpackCodec: Codec = {
  name: 'msgpack',
  subprotocol: 'topicast.v1.msgpack',
  binary: true,
  encodeClient: encodeMsgpackClient,
  encodeServer: encodeMsgpackServer,
  decodeClient: (bytes) => decodeFrame(bytes, clientTypes, readClientFrame),
  decodeServer: (bytes) => decodeFrame(bytes, serverTypes, readServerFrame),
};

const clientTypes: TypesByNumber = typesByNumber(clientFrameNumbers);
const serverTypes: TypesByNumber = typesByNumber(serverFrameNumbers);
const unknownTypeFields = ['req'] as const;
const writer = new MsgpackWriter();

export function encodeMsgpackClient(frame: ClientFrame): Uint8Array {
  const { type, ...fields } = frame;
  const number = clientFrameNumbers[type];
  if (frame.type !== 'subscribe') return encodeFrame(number, type, fields);
  return encodeFrame(number, type, { ...fields, topics: frame.topics.map(topicRequestToWire) });
}

export function encodeMsgpackServer(frame: ServerFrame): Uint8Array {
  if (frame.type !== 'msg') {
    const { type, ...fields } = frame;
    return encodeFrame(serverFrameNumbers[type], type, fields);
  }
  // The one that is encoded once per message and codec on every node.
  const { offset, pattern } = frame;
  writer.start().array(pattern !== undefined ? 5 : offset !== undefined ? 4 : 3);
  writer.number(serverFrameNumbers.msg);
  writer.string(frame.topic);
  writer.raw(rawBytes(frame.data));
  if (offset !== undefined) writer.number(offset);
  else if (pattern !== undefined) writer.nil();
  if (pattern !== undefined) writer.string(pattern);
  return writer.finish();
}

function encodeFrame(number: number, type: FrameType, fields: Readonly<Record<string, unknown>>): Uint8Array {
  const order: readonly string[] = frameFields[type];
  let count = order.length;
  while (count > 0 && fields[order[count - 1] ?? ''] === undefined) count--;
  writer.start().array(count + 1);
  writer.number(number);
  for (const name of order.slice(0, count)) {
    if (name === 'data') writer.raw(rawBytes(fields[name] as Payload));
    else writeField(fields[name]);
  }
  return writer.finish();
}

/** Fields of frames are made of what JSON has, `undefined` aside. */
function writeField(value: unknown): void {
  if (value === undefined || value === null) writer.nil();
  else if (typeof value === 'string') writer.string(value);
  else if (typeof value === 'number') writer.number(value);
  else if (typeof value === 'boolean') writer.boolean(value);
  else if (Array.isArray(value)) {
    writer.array(value.length);
    for (const element of value as readonly unknown[]) writeField(element);
  } else {
    const entries = Object.entries(value).filter(([, of]) => of !== undefined);
    writer.map(entries.length);
    for (const [key, of] of entries) {
      writer.string(key);
      writeField(of);
    }
  }
}

function rawBytes(data: Payload): Uint8Array {
  if (data.format !== 'msgpack') {
    throw new TypeError('the MessagePack codec was given a payload of another format');
  }
  return data.bytes;
}

function decodeFrame<F>(bytes: Uint8Array, types: TypesByNumber, read: FrameReader<F>): Result<F> {
  const head = arrayHead(bytes, 0);
  const start = head === undefined || head.count === 0 ? -1 : skipValue(bytes, head.at);
  if (head === undefined || start < 0) return failure('invalid_frame', 'a frame is an array, its type first');
  const number = readValue(bytes, head.at);
  const type = types.get(number);
  if (type === undefined && !Number.isSafeInteger(number)) {
    return failure('invalid_frame', 'the type of a frame is a number');
  }
  const order: readonly string[] = type === undefined ? unknownTypeFields : frameFields[type];
  const fields: Record<string, unknown> = {};
  let data: Result<Payload> | undefined;
  let at = start;
  for (let i = 0; i < head.count - 1; i++) {
    const end = skipValue(bytes, at);
    const name = order[i];
    if (end < 0) return brokenFrame(fields);
    if (name === 'data') data = success(copyMsgpack(bytes.subarray(at, end)));
    else if (name !== undefined) fields[name] = readValue(bytes, at);
    at = end;
  }
  if (at !== bytes.length) return brokenFrame(fields);
  return read(type ?? 'unknown', fields, data);
}

function brokenFrame(fields: Readonly<Record<string, unknown>>): Result<never> {
  return failure(
    'invalid_frame',
    'the frame is not exactly one MessagePack value with UTF-8 strings, or nests too deep',
    readRequestNumber(fields),
  );
}

function typesByNumber<T extends FrameType>(numbers: Readonly<Record<T, number>>): TypesByNumber {
  const types = Object.entries(numbers) as [T, number][];
  return new Map(types.map(([type, number]) => [number, type]));
}
