import {
  frameFields,
  type ClientFrame,
  type ClientFrameType,
  type ServerFrame,
  type ServerFrameType,
} from './frames.js';
import { grammarLimits } from './limits.js';
import type { Payload } from './payload.js';
import { failure, success, type Result } from './result.js';
import {
  readBoolean,
  readErrorCode,
  readFloors,
  readList,
  readMessageId,
  readNumber,
  readOffset,
  readSubscribedTopic,
  readText,
  readTopicRequest,
} from './frame-values.js';

/**
 * What the fields of each frame must be, once for both codecs. A codec hands over the decoded fields and the
 * raw payload; what comes back is a frame with nothing in it that was not checked.
 */

/** Decoded fields by name. A `null` counts as absent. Maps of MessagePack may come as `Map`. */
export type FrameFields = Readonly<Record<string, unknown>>;

/** Turns fields into a frame. `data` is left out when the frame has none. */
export type FrameReader<F> = (type: string, fields: FrameFields, data?: Result<Payload>) => Result<F>;

interface Field<T, R extends boolean> {
  readonly required: R;
  /** For the failure's message. */
  readonly expects: string;
  /** The checked value; `undefined` when it is something else. */
  readonly read: (value: unknown) => T | undefined;
}

/** False for optional keys: a field that may be missing does not fit one that must be there. */
type IsRequired<F, K extends keyof F> = F extends Readonly<Record<K, F[K]>> ? true : false;
type FieldsOf<F> = {
  readonly [K in Exclude<keyof F, 'type' | 'data'>]-?: Field<Exclude<F[K], undefined>, IsRequired<F, K>>;
};
type Shapes<F extends { readonly type: string }> = {
  readonly [T in F['type']]: FieldsOf<Extract<F, { readonly type: T }>>;
};
type AnyShapes = Readonly<Record<string, Readonly<Record<string, Field<unknown, boolean>>>>>;

const framesWithData: ReadonlySet<string> = new Set(['publish', 'msg', 'direct']);
const missing = failure('invalid_frame', 'is missing');
const text = field('a string', readText);
const offset = field('a non-negative safe integer', readOffset);
const number = field('a number', readNumber);
const topics = field('an array of strings', (value) => readList(value, readText));
const req = optional(offset);

const clientShapes: Shapes<ClientFrame> = {
  subscribe: {
    req,
    topics: field('an array of strings or {topic, epoch?, offset?, last?}', (value) =>
      readList(value, readTopicRequest),
    ),
  },
  unsubscribe: { req, topics },
  publish: {
    req,
    topic: text,
    id: optional(field(`1 to ${grammarLimits.messageIdCharsMax} characters, none a control`, readMessageId)),
  },
  ack: { ids: field('an array of non-negative safe integers', (value) => readList(value, readOffset)) },
  ping: {},
  auth: { req, token: text },
};

const serverShapes: Shapes<ServerFrame> = {
  welcome: {
    session: text,
    node: text,
    pingSec: number,
    idleSec: number,
    expiresInSec: optional(number),
    degraded: optional(topics),
  },
  subscribed: {
    req,
    topics: field('an array of topics', (value) => readList(value, readSubscribedTopic)),
  },
  unsubscribed: { req, topics, reason: optional(text) },
  msg: { topic: text, offset: optional(offset), pattern: optional(text) },
  direct: { id: optional(offset) },
  published: {
    req,
    topic: text,
    offset: optional(offset),
    epoch: optional(text),
    duplicate: optional(field('a boolean', readBoolean)),
  },
  error: { req, code: field('a string', readErrorCode), message: text, topic: optional(text) },
  gap: { topic: text, from: offset, to: offset },
  resync: { topics },
  expiring: { inSec: number },
  pong: { floors: optional(field('a map of strings', readFloors)) },
  bye: { code: number, reason: text, retryMs: optional(number) },
};

/** Whether frames of this type carry a payload. */
export function hasData(type: string): boolean {
  return framesWithData.has(type);
}

export const readClientFrame: FrameReader<ClientFrame> = (type, fields, data) =>
  readFrame<ClientFrame>(clientShapes, type, fields, data);

export const readServerFrame: FrameReader<ServerFrame> = (type, fields, data) =>
  readFrame<ServerFrame>(serverShapes, type, fields, data);

/** The request number of a frame, if it has a usable one: a safe integer of 0 or more. */
export function readRequestNumber(fields: FrameFields): number | undefined {
  return readOffset(fields['req']);
}

function readFrame<F extends { readonly type: string }>(
  shapes: AnyShapes,
  type: string,
  fields: FrameFields,
  data: Result<Payload> | undefined,
): Result<F> {
  const shape = Object.hasOwn(shapes, type) ? shapes[type] : undefined;
  const known = readRequestNumber(fields);
  if (shape === undefined) return failure('unknown_type', 'this version has no such type of frame', known);
  const frame: Record<string, unknown> = { type };
  for (const name of frameFields[type as ClientFrameType | ServerFrameType]) {
    const outcome = name === 'data' ? (data ?? missing) : readField(shape[name], fields[name]);
    if (!outcome.ok) return failure(outcome.code, `${type}: ${name} ${outcome.message}`, known);
    if (outcome.value !== undefined) frame[name] = outcome.value;
  }
  // `Shapes` ties each field's reader to the type of the frame's field.
  return success(frame as unknown as F);
}

/** The checked value; `undefined` for an optional field that is absent. */
function readField(field: Field<unknown, boolean> | undefined, value: unknown): Result<unknown> {
  if (field === undefined) return success(undefined);
  if (value === undefined || value === null) return field.required ? missing : success(undefined);
  const checked = field.read(value);
  return checked === undefined ? failure('invalid_frame', `must be ${field.expects}`) : success(checked);
}

function field<T>(expects: string, read: (value: unknown) => T | undefined): Field<T, true> {
  return { required: true, expects, read };
}

function optional<T>(of: Field<T, true>): Field<T, false> {
  return { ...of, required: false };
}
