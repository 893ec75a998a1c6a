import type { ErrorCode } from '../protocol/codes.js';
import { members, type JsonSpan } from '../protocol/json-scan.js';
import { jsonPayload } from '../protocol/payload-json.js';
import type { Payload } from '../protocol/payload.js';
import { failure, success, type Failure, type Result } from '../protocol/result.js';
import { isUserId } from '../protocol/topic.js';
import { decodeUtf8 } from '../protocol/utf8.js';
import type { Principal } from './auth.js';
import { authorise } from './http-auth.js';
import type { Exchange } from './http-exchange.js';
import type { HttpServices } from './http-services.js';

/** What a body of one payload may have beyond it: white space around it. */
export const payloadSlackBytes = 1024;
/** The body of a call about many messages or users. */
export const batchBodyBytesMax = 8 * 1024 * 1024;

const statuses: Readonly<Record<ErrorCode, number>> = {
  invalid_frame: 400,
  invalid_topic: 400,
  unknown_type: 400,
  too_many_topics: 400,
  forbidden: 403,
  queue_full: 409,
  payload_too_large: 413,
  rate_limited: 429,
  internal: 500,
  unavailable: 503,
};

/** Answers a failure of the node with the fitting status. */
export function refuse(exchange: Exchange, { code, message }: Failure): void {
  const isTemporary = code === 'unavailable' || code === 'rate_limited';
  exchange.error(statuses[code], code, message, isTemporary ? [['Retry-After', '1']] : []);
}

/** Who is calling and what they sent. */
export interface Call {
  readonly principal: Principal;
  readonly text: string;
}

/**
 * Reads the body while the token is checked; to be called before anything asynchronous. Undefined: it is answered, or there is nobody
 * left to answer.
 */
export async function readCall(
  exchange: Exchange,
  services: HttpServices,
  bytesMax: number,
): Promise<Call | undefined> {
  const reading = exchange.readBody(bytesMax);
  const principal = await authorise(exchange, services);
  if (principal === undefined) return undefined;
  const bytes = await reading;
  if (bytes === undefined) return undefined;
  const text = decodeUtf8(bytes);
  if (text === undefined) {
    refuse(exchange, failure('invalid_frame', 'the body is not UTF-8'));
    return undefined;
  }
  return { principal, text };
}

/** `readCall` for a body that is one payload, passed through untouched. */
export async function readPayloadCall(
  exchange: Exchange,
  services: HttpServices,
): Promise<{ readonly principal: Principal; readonly payload: Payload } | undefined> {
  const call = await readCall(exchange, services, services.config.limits.payloadBytesMax + payloadSlackBytes);
  if (call === undefined) return undefined;
  const payload = jsonPayload(call.text);
  if (payload.ok) return { principal: call.principal, payload: payload.value };
  refuse(exchange, payload);
  return undefined;
}

/** The user id of the path. */
export function readUserId(exchange: Exchange): Result<string> {
  const userId = exchange.segment(0);
  if (userId !== undefined && isUserId(userId)) return success(userId);
  return failure('invalid_frame', 'a user id has 1 to 128 of [A-Za-z0-9_.:=@-]');
}

/** A topic or pattern of the path, in the grammar of `parse`. */
export function readTopic(exchange: Exchange, parse: (text: string) => Result<string>): Result<string> {
  const text = exchange.segment(0);
  if (text === undefined) return failure('invalid_topic', 'the topic is not percent-encoded UTF-8');
  return parse(text);
}

/** An integer of the query within bounds, both included; `absent` when it is not there. */
export function readInteger(
  params: URLSearchParams,
  name: string,
  [min, max]: readonly [number, number],
  absent: number,
): Result<number> {
  const text = params.get(name);
  if (text === null || text === '') return success(absent);
  const value = Number(text);
  if (/^[0-9]{1,16}$/.test(text) && value >= min && value <= max) return success(value);
  return failure('invalid_frame', `${name} is an integer from ${min} to ${max}`);
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Where the value of a member stands in valid JSON whose object starts at `at`; of several the last, as in `JSON.parse`. */
export function lastMember(text: string, at: number, key: string): JsonSpan | undefined {
  let found: JsonSpan | undefined;
  for (const member of members(text, at)) if (member.key === key) found = member;
  return found;
}

export function isTextList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}
