import { Packr } from 'msgpackr';
import {
  clientFrameNumbers,
  frameFields,
  serverFrameNumbers,
  type ClientFrame,
  type ServerFrame,
  type ServerFrameType,
} from '../../protocol/frames.js';
import type { CodecName } from './verdict.js';

/**
 * The two codecs as a client author would write them from the protocol page, on plain libraries: what the demo checks must not pass through the
 * broker's own encoders on both ends.
 */

type Plain<F> = F extends { readonly data: unknown } ? Omit<F, 'data'> & { readonly data: unknown } : F;
/** A frame from the server with its payload as a plain value. */
export type Received = Plain<ServerFrame>;
/** What the demo's clients send; they publish by HTTP only. */
export type Sent = Exclude<ClientFrame, { type: 'publish' | 'auth' }>;

export const subprotocols: Readonly<Record<CodecName, string>> = {
  json: 'topicast.v1.json',
  msgpack: 'topicast.v1.msgpack',
};

const packr = new Packr({ useRecords: false, mapsAsObjects: true, int64AsType: 'number' });
const typeOfNumber = new Map(
  Object.entries(serverFrameNumbers).map(([type, number]) => [number as number, type as ServerFrameType]),
);

export function encode(codec: CodecName, frame: Sent): string | Uint8Array {
  if (codec === 'json') return JSON.stringify(frame);
  const byName = new Map<string, unknown>(Object.entries(frame));
  const fields: unknown[] = frameFields[frame.type].map((name) => byName.get(name) ?? null);
  while (fields.length > 0 && fields.at(-1) === null) fields.pop();
  return packr.pack([clientFrameNumbers[frame.type], ...fields]);
}

/** @returns undefined for a type of frame that this version does not know. @throws Error when it is not a frame at all */
export function decode(codec: CodecName, data: Buffer, isBinary: boolean): Received | undefined {
  if (isBinary !== (codec === 'msgpack')) throw new Error(`a ${isBinary ? 'binary' : 'text'} frame came`);
  if (codec === 'json') {
    const frame = JSON.parse(data.toString('utf8')) as Received;
    return frame.type in serverFrameNumbers ? frame : undefined;
  }
  const [number, ...values] = packr.unpack(data) as [number, ...unknown[]];
  const type = typeOfNumber.get(number);
  if (type === undefined) return undefined;
  const fields: readonly string[] = frameFields[type];
  const frame: Record<string, unknown> = { type };
  for (const [i, name] of fields.entries()) {
    // `data` may be nil for good; any other nil is an absent field.
    if (i < values.length && (values[i] !== null || name === 'data')) frame[name] = values[i];
  }
  return frame as unknown as Received;
}
