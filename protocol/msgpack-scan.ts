import { grammarLimits } from './limits.js';
import { isUtf8 } from './utf8.js';

/**
 * Walks MessagePack bytes without building anything. Every read is checked against the end, declared lengths
 * are compared and never allocated, and each step takes at least one byte, so the work is linear in what is
 * really there. See https://github.com/msgpack/msgpack/blob/master/spec.md.
 */

/** The head of an array: how many elements it declares (there may be fewer bytes than that) and where they start. */
export interface ArrayHead {
  readonly count: number;
  readonly at: number;
}

/**
 * Where the value at `at` ends; -1 when it is cut off, holds the unused byte 0xc1 or a string that is not
 * UTF-8, or nests deeper than `depthMax`.
 */
export function skipValue(
  bytes: Uint8Array,
  at: number,
  depthMax: number = grammarLimits.payloadDepthMax,
): number {
  /** Of each open container: how many values are still to come, the current one included. */
  const pending: number[] = [];
  let position = at;
  for (;;) {
    const lead = bytes[position];
    if (lead === undefined) return -1;
    if (isContainer(lead)) {
      const children = childCount(bytes, position);
      if (children < 0 || pending.length >= depthMax) return -1;
      position += containerHeadSize(lead);
      if (children > 0) {
        pending.push(children);
        continue;
      }
      if (pending.length === 0) return position;
    } else {
      position = scalarEnd(bytes, position, lead);
      if (position < 0 || pending.length === 0) return position;
    }
    if (closeContainers(pending)) return position;
  }
}

/** Counts one value as read; whether it was the last of the outermost container. */
function closeContainers(pending: number[]): boolean {
  while (pending.length > 0) {
    const left = (pending.at(-1) ?? 0) - 1;
    if (left > 0) {
      pending[pending.length - 1] = left;
      return false;
    }
    pending.pop();
  }
  return true;
}

/** Reads the head of an array; `undefined` when there is no whole one. */
export function arrayHead(bytes: Uint8Array, at: number): ArrayHead | undefined {
  const lead = bytes[at];
  if (lead === undefined || !isArray(lead)) return undefined;
  const count = childCount(bytes, at);
  return count < 0 ? undefined : { count, at: at + containerHeadSize(lead) };
}

export function uint16(bytes: Uint8Array, at: number): number {
  return ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
}

export function uint32(bytes: Uint8Array, at: number): number {
  return uint16(bytes, at) * 0x1_0000 + uint16(bytes, at + 2);
}

export function isArray(lead: number): boolean {
  return (lead >= 0x90 && lead <= 0x9f) || lead === 0xdc || lead === 0xdd;
}

export function isMap(lead: number): boolean {
  return (lead >= 0x80 && lead <= 0x8f) || lead === 0xde || lead === 0xdf;
}

/** How long the head of an array or map is. */
export function containerHeadSize(lead: number): number {
  if (lead < 0xa0) return 1;
  return lead === 0xdc || lead === 0xde ? 3 : 5;
}

/** How many values an array or map declares, two for each entry of a map; -1 when the head is cut off. */
export function childCount(bytes: Uint8Array, at: number): number {
  const lead = bytes[at] ?? 0;
  if (at + containerHeadSize(lead) > bytes.length) return -1;
  const perEntry = isMap(lead) ? 2 : 1;
  if (lead < 0xa0) return perEntry * (lead & 0x0f);
  const count = containerHeadSize(lead) === 3 ? uint16(bytes, at + 1) : uint32(bytes, at + 1);
  return perEntry * count;
}

function isContainer(lead: number): boolean {
  return isArray(lead) || isMap(lead);
}

/** Where a value that is no array or map ends; -1 when it is cut off or not valid. */
function scalarEnd(bytes: Uint8Array, at: number, lead: number): number {
  if (lead < 0x80 || lead >= 0xe0) return at + 1;
  const head = scalarHeadSize(lead);
  if (head < 0 || at + head > bytes.length) return -1;
  const start = at + head;
  const end = start + bodySize(bytes, at, lead);
  if (end > bytes.length) return -1;
  return isString(lead) && !isUtf8(bytes, start, end) ? -1 : end;
}

export function isString(lead: number): boolean {
  return (lead >= 0xa0 && lead <= 0xbf) || (lead >= 0xd9 && lead <= 0xdb);
}

/** The bytes before a scalar's body: its lead, its length and the type of an extension; -1 for 0xc1. */
export function scalarHeadSize(lead: number): number {
  if (lead === 0xc1) return -1;
  if (lead === 0xc4 || lead === 0xd9) return 2;
  if (lead === 0xc5 || lead === 0xda || lead === 0xc7) return 3;
  if (lead === 0xc8) return 4;
  if (lead === 0xc6 || lead === 0xdb) return 5;
  if (lead === 0xc9) return 6;
  return lead >= 0xd4 && lead <= 0xd8 ? 2 : 1;
}

/** The bytes of a scalar's body, as declared. The head must be whole. */
export function bodySize(bytes: Uint8Array, at: number, lead: number): number {
  if (lead >= 0xa0 && lead <= 0xbf) return lead & 0x1f;
  switch (lead) {
    case 0xc4:
    case 0xc7:
    case 0xd9:
      return bytes[at + 1] ?? 0;
    case 0xc5:
    case 0xc8:
    case 0xda:
      return uint16(bytes, at + 1);
    case 0xc6:
    case 0xc9:
    case 0xdb:
      return uint32(bytes, at + 1);
    default:
      return fixedBodySizes[lead] ?? 0;
  }
}

/** Floats, integers and fixed extensions, by lead. */
const fixedBodySizes: Readonly<Record<number, number>> = {
  0xca: 4,
  0xcb: 8,
  0xcc: 1,
  0xcd: 2,
  0xce: 4,
  0xcf: 8,
  0xd0: 1,
  0xd1: 2,
  0xd2: 4,
  0xd3: 8,
  0xd4: 1,
  0xd5: 2,
  0xd6: 4,
  0xd7: 8,
  0xd8: 16,
};
