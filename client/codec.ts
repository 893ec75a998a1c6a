import { encodeJsonClient } from '../protocol/codec-json.js';
import { hasData, readServerFrame } from '../protocol/frame-shapes.js';
import type { ClientFrame, ServerFrame } from '../protocol/frames.js';
import type { Payload } from '../protocol/payload.js';
import { failure, success, type Result } from '../protocol/result.js';

export interface Received {
  readonly frame: ServerFrame;
  /** The payload as a plain value, for frames that have one. */
  readonly data: unknown;
}

/** Frames and payloads as one subprotocol has them. */
export interface WireCodec {
  /** The WebSocket subprotocol that selects it. */
  readonly subprotocol: string;
  /** @throws TypeError for what the format has no value for (a function, a cycle) */
  payload(data: unknown): Payload;
  encode(frame: ClientFrame): string | Uint8Array;
  /** Total: anything that is not a frame of the protocol is a failure. */
  decode(message: unknown): Result<Received>;
}

const parsedAlready = success<Payload>({ format: 'json', text: '' });

/** JSON without a second look at the text: what matters here is the value, not the publisher's spelling of it. */
export const json: WireCodec = {
  subprotocol: 'topicast.v1.json',
  payload: (data) => {
    // JSON.stringify gives undefined for undefined and for functions, whatever its type says.
    const text = JSON.stringify(data) as string | undefined;
    if (text === undefined) throw new TypeError('JSON has no value for this');
    return { format: 'json', text };
  },
  encode: encodeJsonClient,
  decode: (message) => {
    const fields = parseObject(message);
    const type = fields?.['type'];
    if (fields === undefined || typeof type !== 'string') {
      return failure('invalid_frame', 'not a JSON object with a type');
    }
    const frame = readServerFrame(
      type,
      fields,
      hasData(type) && 'data' in fields ? parsedAlready : undefined,
    );
    return frame.ok ? success({ frame: frame.value, data: fields['data'] }) : frame;
  },
};

function parseObject(message: unknown): Readonly<Record<string, unknown>> | undefined {
  if (typeof message !== 'string') return undefined;
  try {
    const value = JSON.parse(message) as unknown;
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
