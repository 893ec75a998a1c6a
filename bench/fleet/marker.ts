import { readValue } from '../../protocol/msgpack-read.js';
import { MsgpackWriter } from '../../protocol/msgpack-write.js';
import type { Payload } from '../../protocol/payload.js';

/** What a message says of itself: when it was meant to leave, and its number within its topic. */
export interface Marker {
  /** µs on the machine's monotonic clock, which all its processes share. */
  readonly dueUs: number;
  /** Counted from 0. */
  readonly number: number;
}

const fixedChars = '{"t":,"n":,"p":""}'.length;
/** Map of three, three keys of one character, a float or integer of nine bytes, one of five, a string's head of three. */
const fixedBytes = 1 + 3 * 2 + 9 + 5 + 3;
const writer = new MsgpackWriter();

export function nowUs(): number {
  return Number(process.hrtime.bigint() / 1000n);
}

/** JSON of exactly `bytes` characters, if the numbers leave room for that. */
export function payloadText({ dueUs, number }: Marker, bytes: number): string {
  const padding = bytes - fixedChars - String(dueUs).length - String(number).length;
  return `{"t":${dueUs},"n":${number},"p":"${'x'.repeat(Math.max(0, padding))}"}`;
}

/** The same as a payload of either codec; in MessagePack of about `bytes` bytes, a few less. */
export function markedPayload(codec: 'json' | 'msgpack', marker: Marker, bytes: number): Payload {
  if (codec === 'json') return { format: 'json', text: payloadText(marker, bytes) };
  writer.start();
  writer.map(3);
  writer.string('t');
  writer.number(marker.dueUs);
  writer.string('n');
  writer.number(marker.number);
  writer.string('p');
  writer.string('x'.repeat(Math.max(0, bytes - fixedBytes)));
  return { format: 'msgpack', bytes: writer.finish() };
}

/** Reads it back; undefined when the payload is not one of these. Slow: for what comes rarely. */
export function markerOf(payload: Payload): Marker | undefined {
  const value: unknown = payload.format === 'json' ? JSON.parse(payload.text) : readValue(payload.bytes, 0);
  const fields = value instanceof Map ? value : new Map(Object.entries(value ?? {}));
  const t: unknown = fields.get('t');
  const n: unknown = fields.get('n');
  return typeof t === 'number' && typeof n === 'number' ? { dueUs: t, number: n } : undefined;
}
