import type { Codec } from './codec.js';
import {
  hasData,
  readClientFrame,
  readServerFrame,
  type FrameFields,
  type FrameReader,
} from './frame-shapes.js';
import type { ClientFrame, ServerFrame } from './frames.js';
import { members, parseJson, type JsonMember } from './json-scan.js';
import { validJsonPayload } from './payload-json.js';
import type { Payload } from './payload.js';
import { failure, type Result } from './result.js';
import { topicRequestToWire } from './topic-request.js';
import { decodeUtf8 } from './utf8.js';

/**
 * Frames as JSON objects. A payload's text goes in and out by slicing, never through numbers and objects, so
 * that every digit and duplicate key survives.
 */
export const jsonCodec: Codec = {
  name: 'json',
  subprotocol: 'topicast.v1.json',
  binary: false,
  encodeClient: encodeJsonClient,
  encodeServer: encodeJsonServer,
  decodeClient: (bytes) => decodeBytes(bytes, decodeJsonClient),
  decodeServer: (bytes) => decodeBytes(bytes, decodeJsonServer),
};

export function encodeJsonClient(frame: ClientFrame): string {
  switch (frame.type) {
    case 'publish': {
      const { data, ...head } = frame;
      return withData(head, data);
    }
    case 'subscribe':
      return JSON.stringify({ ...frame, topics: frame.topics.map(topicRequestToWire) });
    default:
      return JSON.stringify(frame);
  }
}

export function encodeJsonServer(frame: ServerFrame): string {
  switch (frame.type) {
    case 'msg': {
      // The one that is encoded once per message and codec on every node.
      const offset = frame.offset === undefined ? '' : `,"offset":${frame.offset}`;
      const pattern = frame.pattern === undefined ? '' : `,"pattern":${JSON.stringify(frame.pattern)}`;
      const topic = JSON.stringify(frame.topic);
      return `{"type":"msg","topic":${topic}${offset}${pattern},"data":${rawText(frame.data)}}`;
    }
    case 'direct': {
      const { data, ...head } = frame;
      return withData(head, data);
    }
    default:
      return JSON.stringify(frame);
  }
}

/** Like `jsonCodec.decodeClient`, for text that is already a string. */
export function decodeJsonClient(text: string): Result<ClientFrame> {
  return decodeText(text, readClientFrame);
}

/** Like `jsonCodec.decodeServer`, for text that is already a string, as a browser hands it over. */
export function decodeJsonServer(text: string): Result<ServerFrame> {
  return decodeText(text, readServerFrame);
}

function withData(head: { readonly type: string }, data: Payload): string {
  return `${JSON.stringify(head).slice(0, -1)},"data":${rawText(data)}}`;
}

function rawText(data: Payload): string {
  if (data.format !== 'json') throw new TypeError('the JSON codec was given a payload of another format');
  return data.text;
}

function decodeBytes<F>(bytes: Uint8Array, decode: (text: string) => Result<F>): Result<F> {
  const text = decodeUtf8(bytes);
  return text === undefined ? failure('invalid_frame', 'the frame is not UTF-8') : decode(text);
}

function decodeText<F>(text: string, read: FrameReader<F>): Result<F> {
  const parsed = parseJson(text);
  if (!parsed.ok) return parsed;
  const fields = parsed.value;
  if (!isObject(fields)) return failure('invalid_frame', 'a frame is an object');
  const type = fields['type'];
  if (typeof type !== 'string') return failure('invalid_frame', 'a frame has a type, a string');
  return read(type, fields, hasData(type) ? sliceData(text) : undefined);
}

/** The raw text of `data`; of the last one if there are several, as `JSON.parse` has it. */
function sliceData(text: string): Result<Payload> | undefined {
  let data: JsonMember | undefined;
  for (const member of members(text)) {
    if (member.key === 'data') data = member;
  }
  return data === undefined ? undefined : validJsonPayload(text.slice(data.start, data.end));
}

function isObject(value: unknown): value is FrameFields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
