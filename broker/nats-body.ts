import { headers as createHeaders, type Msg, type MsgHdrs } from 'nats';
import { jsonPayload } from '../protocol/payload-json.js';
import { msgpackPayload } from '../protocol/payload-msgpack.js';
import type { Payload } from '../protocol/payload.js';
import type { Result } from '../protocol/result.js';

const contentType = 'Content-Type';
const msgpackType = 'application/msgpack';
const messageId = 'Nats-Msg-Id';

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** The body of a NATS message: the payload as it is, JSON unless a header says MessagePack. */
export function encodeBody(payload: Payload): string | Uint8Array {
  return payload.format === 'json' ? payload.text : payload.bytes;
}

/** Undefined when there is nothing to say, which is cheaper for everybody. */
export function encodeHeaders(payload: Payload, id: string | undefined): MsgHdrs | undefined {
  if (id === undefined && payload.format === 'json') return undefined;
  const headers = createHeaders();
  if (id !== undefined) headers.set(messageId, id);
  if (payload.format === 'msgpack') headers.set(contentType, msgpackType);
  return headers;
}

/** What `encodeHeaders` comes to for JSON with an id, as text. */
export function idHeader(id: string): string {
  return `NATS/1.0\r\n${messageId}: ${id}\r\n\r\n`;
}

/**
 * The headers of a message from outside. The client decodes them when they are first asked for, and throws when a name in them is none, which any
 * publisher can send.
 */
export function readHeaders(message: Pick<Msg, 'headers'>): Result<MsgHdrs | undefined> {
  try {
    return { ok: true, value: message.headers };
  } catch {
    return { ok: false, code: 'invalid_frame', message: 'headers that cannot be read' };
  }
}

/** Reads what anybody may have published: back ends in any language, with or without faults. Copies what it keeps. */
export function decodeBody(message: Pick<Msg, 'data' | 'headers'>): Result<Payload> {
  const headers = readHeaders(message);
  if (!headers.ok) return headers;
  if (headers.value?.get(contentType) === msgpackType) return msgpackPayload(message.data.slice());
  let text: string;
  try {
    text = utf8.decode(message.data);
  } catch {
    return { ok: false, code: 'invalid_frame', message: 'not UTF-8' };
  }
  return jsonPayload(text);
}
