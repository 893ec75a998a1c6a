import { grammarLimits } from './limits.js';
import { skipValue } from './msgpack-scan.js';
import type { MsgpackPayload } from './payload.js';
import { failure, success, type Result } from './result.js';

/**
 * A payload of any bytes, which are copied. Refused with `invalid_frame` when they are not exactly one
 * MessagePack value, hold a string that is not UTF-8, or nest deeper than `payloadDepthMax`.
 */
export function msgpackPayload(bytes: Uint8Array): Result<MsgpackPayload> {
  return skipValue(bytes, 0) === bytes.length ? success(copyMsgpack(bytes)) : invalidMsgpack();
}

/** A payload of bytes that `skipValue` accepted. */
export function copyMsgpack(bytes: Uint8Array): MsgpackPayload {
  // Not `slice`: on a Node `Buffer` that would be a view.
  return { format: 'msgpack', bytes: new Uint8Array(bytes) };
}

export function invalidMsgpack(): Result<never> {
  const depth = grammarLimits.payloadDepthMax;
  return failure('invalid_frame', `not one MessagePack value with UTF-8 strings, at most ${depth} deep`);
}
