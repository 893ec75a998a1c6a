import {
  bodySize,
  childCount,
  containerHeadSize,
  isArray,
  isMap,
  isString,
  scalarHeadSize,
  skipValue,
  uint32,
} from './msgpack-scan.js';
import { decodeUtf8 } from './utf8.js';

/** An extension of an application, or a timestamp (type -1). */
export class MsgpackExtension {
  readonly type: number;
  readonly body: Uint8Array;

  constructor(type: number, body: Uint8Array) {
    this.type = type;
    this.body = body;
  }
}

/** Texts up to this many bytes are built by hand: below it a `TextDecoder` call costs more than it saves. */
const shortTextBytes = 40;

/**
 * Reads the value at `at`, which `skipValue` must have accepted: it does not check bounds, and recurses as deep
 * as the value nests. nil is null; integers outside the safe range are `bigint`; bin is a view into `bytes`;
 * maps are `Map`, so that any key may stand in them and none can touch a prototype. A key that is a container
 * itself stays the bytes it is: text made of keys within keys would double with every level.
 */
export function readValue(bytes: Uint8Array, at: number): unknown {
  return new Reader(bytes, at).next();
}

class Reader {
  readonly #bytes: Uint8Array;
  #at: number;

  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = bytes;
    this.#at = at;
  }

  next(): unknown {
    const lead = this.#bytes[this.#at] ?? 0;
    if (isArray(lead)) return this.#array(lead);
    if (isMap(lead)) return this.#map(lead);
    if (lead < 0x80 || lead >= 0xe0) {
      this.#at++;
      return lead < 0x80 ? lead : lead - 0x100;
    }
    const start = this.#at + scalarHeadSize(lead);
    const end = start + bodySize(this.#bytes, this.#at, lead);
    this.#at = end;
    if (isString(lead)) return readString(this.#bytes, start, end);
    return readScalar(this.#bytes, lead, start, end);
  }

  #array(lead: number): unknown[] {
    const count = childCount(this.#bytes, this.#at);
    this.#at += containerHeadSize(lead);
    const elements: unknown[] = [];
    for (let i = 0; i < count; i++) elements.push(this.next());
    return elements;
  }

  #map(lead: number): Map<unknown, unknown> {
    const count = childCount(this.#bytes, this.#at) / 2;
    this.#at += containerHeadSize(lead);
    const entries = new Map<unknown, unknown>();
    for (let i = 0; i < count; i++) {
      const key = this.#key();
      entries.set(key, this.next());
    }
    return entries;
  }

  #key(): unknown {
    const start = this.#at;
    const lead = this.#bytes[start] ?? 0;
    if (!isArray(lead) && !isMap(lead)) return this.next();
    this.#at = skipValue(this.#bytes, start);
    return this.#bytes.subarray(start, this.#at);
  }
}

function readString(bytes: Uint8Array, start: number, end: number): string {
  if (end - start <= shortTextBytes) {
    let text = '';
    let at = start;
    for (; at < end; at++) {
      const code = bytes[at] ?? 0;
      if (code >= 0x80) break;
      text += String.fromCharCode(code);
    }
    if (at === end) return text;
  }
  return decodeUtf8(bytes.subarray(start, end)) ?? '';
}

function readScalar(bytes: Uint8Array, lead: number, start: number, end: number): unknown {
  switch (lead) {
    case 0xc0:
      return null;
    case 0xc2:
      return false;
    case 0xc3:
      return true;
    case 0xc4:
    case 0xc5:
    case 0xc6:
      return bytes.subarray(start, end);
    case 0xcc:
      return bytes[start] ?? 0;
    case 0xce:
      return uint32(bytes, start);
    default:
      return lead >= 0xca && lead <= 0xd3
        ? readNumber(new DataView(bytes.buffer, bytes.byteOffset + start, end - start), lead)
        : new MsgpackExtension(((bytes[start - 1] ?? 0) << 24) >> 24, bytes.subarray(start, end));
  }
}

function readNumber(view: DataView, lead: number): number | bigint {
  switch (lead) {
    case 0xca:
      return view.getFloat32(0);
    case 0xcb:
      return view.getFloat64(0);
    case 0xcd:
      return view.getUint16(0);
    case 0xcf:
      return narrow(view.getBigUint64(0));
    case 0xd0:
      return view.getInt8(0);
    case 0xd1:
      return view.getInt16(0);
    case 0xd2:
      return view.getInt32(0);
    default:
      return narrow(view.getBigInt64(0));
  }
}

function narrow(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}
