/** Codes of `error` frames, of per-topic errors in `subscribed`, and of HTTP error bodies. */
export const errorCodes = [
  'invalid_frame',
  'invalid_topic',
  'forbidden',
  'too_many_topics',
  'payload_too_large',
  'rate_limited',
  'queue_full',
  'unavailable',
  'unknown_type',
  'internal',
] as const;

export type ErrorCode = (typeof errorCodes)[number];

/**
 * WebSocket close codes. The range tells a client what to do: 4000–4499 reconnect, 4500–4999 do not
 * (`shouldReconnect`).
 */
export const closeCodes = {
  draining: 4000,
  slowConsumer: 4001,
  tokenExpired: 4002,
  idle: 4003,
  internal: 4004,
  invalidFrames: 4500,
  replaced: 4501,
  kicked: 4502,
  tooManyConnections: 4503,
} as const;

export type CloseReason = keyof typeof closeCodes;
export type CloseCode = (typeof closeCodes)[CloseReason];

/**
 * Whether a client should connect again after a close with this code. Codes outside 4500–4999 (1006 of a
 * cut line, 1001 of a proxy going away) say nothing against it.
 */
export function shouldReconnect(code: number): boolean {
  return code < 4500 || code > 4999;
}
