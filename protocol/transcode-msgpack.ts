import { MsgpackExtension, readValue } from './msgpack-read.js';

const timestampType = -1;
/** A date reaches this far from 1970, either way. */
const dateSecondsMax = 8_640_000_000_000n;
/** `String.fromCharCode` takes its codes as arguments, of which there may not be too many. */
const base64ChunkBytes = 8 * 1024;

/** JSON text of valid MessagePack bytes. Recurses as deep as they nest. */
export function msgpackToJson(bytes: Uint8Array): string {
  return toJson(readValue(bytes, 0));
}

function toJson(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return `[${value.map(toJson).join(',')}]`;
  if (value instanceof Map) return mapToJson(value);
  const text = toText(value);
  const isText = typeof value === 'string' || typeof value === 'object';
  return isText ? JSON.stringify(text) : text;
}

function mapToJson(map: ReadonlyMap<unknown, unknown>): string {
  // Keys that are different in MessagePack may be one text.
  const members = new Map<string, string>();
  for (const [key, value] of map) members.set(toText(key), toJson(value));
  const parts = Array.from(members, ([key, value]) => `${JSON.stringify(key)}:${value}`);
  return `{${parts.join(',')}}`;
}

/** A plain value as text, without quotes. Containers do not come here: as keys they are bytes (see `readValue`). */
function toText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return numberToText(value);
  if (typeof value === 'bigint' || typeof value === 'boolean') return String(value);
  if (value instanceof Uint8Array) return base64(value);
  if (value instanceof MsgpackExtension) return extensionToText(value);
  return 'null';
}

function numberToText(value: number): string {
  if (!Number.isFinite(value)) return 'null';
  return Object.is(value, -0) ? '-0' : String(value);
}

function extensionToText(extension: MsgpackExtension): string {
  const { type, body } = extension;
  return (type === timestampType ? timestampToText(body) : undefined) ?? base64(body);
}

/** ISO 8601, with milliseconds, or nine digits where those would lose something; `undefined` when it cannot be. */
function timestampToText(body: Uint8Array): string | undefined {
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  switch (body.length) {
    case 4:
      return isoText(BigInt(view.getUint32(0)), 0);
    case 8: {
      const packed = view.getBigUint64(0);
      return isoText(packed & 0x3_ffff_ffffn, Number(packed >> 34n));
    }
    case 12:
      return isoText(view.getBigInt64(4), view.getUint32(0));
    default:
      return undefined;
  }
}

function isoText(seconds: bigint, nanoseconds: number): string | undefined {
  const isInRange = seconds >= -dateSecondsMax && seconds < dateSecondsMax;
  if (!isInRange || nanoseconds >= 1e9) return undefined;
  const text = new Date(Number(seconds) * 1000 + Math.floor(nanoseconds / 1e6)).toISOString();
  if (nanoseconds % 1e6 === 0) return text;
  return text.replace(/\.\d{3}Z$/, `.${String(nanoseconds).padStart(9, '0')}Z`);
}

function base64(bytes: Uint8Array): string {
  let binary = '';
  for (let at = 0; at < bytes.length; at += base64ChunkBytes) {
    binary += String.fromCharCode(...bytes.subarray(at, at + base64ChunkBytes));
  }
  return btoa(binary);
}
