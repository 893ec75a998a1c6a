import { jsonToMsgpack } from './transcode-json.js';
import { msgpackToJson } from './transcode-msgpack.js';
import type { Payload, PayloadFormat } from './payload.js';

/**
 * The payload in the wanted format; the very object when it already is. Total over payloads made by
 * `jsonPayload`, `msgpackPayload` and the decoders, which bound how deep it recurses.
 *
 * MessagePack to JSON: bin is base64 text, integers keep all their digits, NaN and infinities are null, a
 * timestamp is ISO 8601 text (base64 of its body when out of a date's range), another extension is base64 of
 * its body, a key that is no string is its JSON text (base64 of its bytes for containers, bin and extensions).
 * Of entries with one key the last wins.
 *
 * JSON to MessagePack: a number written as an integer is one when it fits 64 bits; every other is a float 64.
 */
export function transcode(payload: Payload, format: PayloadFormat): Payload {
  if (payload.format === format) return payload;
  return payload.format === 'json'
    ? { format: 'msgpack', bytes: jsonToMsgpack(payload.text) }
    : { format: 'json', text: msgpackToJson(payload.bytes) };
}
