/**
 * What a `msg` frame says, read from its bytes without decoding it: one object is filled again and again. Knows payloads made by `marker.ts` only;
 * numbers are -1 where they are not there.
 */
export interface ReadMessage {
  topicStart: number;
  topicEnd: number;
  /** Of the pattern that the message came for; empty range: none. */
  patternStart: number;
  patternEnd: number;
  offset: number;
  dueUs: number;
  number: number;
}

export function emptyMessage(): ReadMessage {
  return { topicStart: 0, topicEnd: 0, patternStart: 0, patternEnd: 0, offset: -1, dueUs: -1, number: -1 };
}

export interface MessageReader {
  /** Whether the frame is a `msg`; cheap. */
  isMessage(bytes: Uint8Array, start: number, end: number): boolean;
  /** Reads a frame that is one. */
  read(bytes: Uint8Array, start: number, end: number, into: ReadMessage): void;
}

/** The end of what was read last: a pair as result would have to be allocated. */
let cursor = 0;
const quote = 0x22;

const jsonTopicAt = '{"type":"msg","topic":"'.length;
const commaQuote = ',"'.length;
const offsetHead = 'offset":'.length;
const patternHead = 'pattern":"'.length;
const dataHead = 'data":'.length;
const timeHead = '{"t":'.length;
const numberHead = ',"n":'.length;

/** In the order in which a node writes the fields: topic, offset, pattern, data. Topics need no escapes. */
export const jsonReader: MessageReader = {
  isMessage: (bytes, start, end) =>
    end - start > jsonTopicAt &&
    bytes[start + 9] === 0x6d && // m
    bytes[start + 10] === 0x73 && // s
    bytes[start + 11] === 0x67, // g
  read(bytes, start, end, into) {
    clear(into, start + jsonTopicAt);
    into.topicEnd = indexOf(bytes, quote, into.topicStart, end);
    let at = into.topicEnd + 1 + commaQuote;
    if (bytes[at] === 0x6f) {
      into.offset = readDigits(bytes, at + offsetHead, end);
      at = cursor + commaQuote;
    }
    if (bytes[at] === 0x70) {
      into.patternStart = at + patternHead;
      into.patternEnd = indexOf(bytes, quote, into.patternStart, end);
      at = into.patternEnd + 1 + commaQuote;
    }
    // data":
    if (bytes[at] === 0x64) readMarkerFields(bytes, at + dataHead, end, into);
  },
};

/** `[19, topic, {t, n, p}, offset?, pattern?]` */
export const msgpackReader: MessageReader = {
  isMessage: (bytes, start, end) =>
    end - start > 3 && (bytes[start]! & 0xf0) === 0x90 && bytes[start + 1] === 19,
  read(bytes, start, end, into) {
    const fields = bytes[start]! & 0x0f;
    clear(into, stringStart(bytes, start + 2));
    into.topicEnd = cursor;
    const at = cursor;
    // A map of three, then the string "t".
    if (bytes[at] !== 0x83 || bytes[at + 1] !== 0xa1 || bytes[at + 2] !== 0x74) return;
    const dueUs = readUnsigned(bytes, at + 3);
    if (dueUs < 0 || bytes[cursor + 1] !== 0x6e) return;
    into.dueUs = dueUs;
    into.number = readUnsigned(bytes, cursor + 2);
    // Over the padding, its key first.
    stringStart(bytes, cursor + 2);
    if (fields > 3 && cursor < end) {
      if (bytes[cursor] === 0xc0) cursor++;
      else into.offset = readUnsigned(bytes, cursor);
    }
    if (fields > 4 && cursor < end) {
      into.patternStart = stringStart(bytes, cursor);
      into.patternEnd = cursor;
    }
  },
};

/** Reads a JSON payload that stands alone. Only `dueUs` and `number` are set. */
export function readMarker(bytes: Uint8Array, at: number, end: number, into: ReadMessage): void {
  into.dueUs = -1;
  into.number = -1;
  readMarkerFields(bytes, at, end, into);
}

/** `{"t":1,"n":1` */
function readMarkerFields(bytes: Uint8Array, at: number, end: number, into: ReadMessage): void {
  if (bytes[at] !== 0x7b || bytes[at + 2] !== 0x74) return;
  const dueUs = readDigits(bytes, at + timeHead, end);
  if (dueUs < 0 || bytes[cursor + 2] !== 0x6e) return;
  into.dueUs = dueUs;
  into.number = readDigits(bytes, cursor + numberHead, end);
}

function clear(into: ReadMessage, topicStart: number): void {
  into.topicStart = topicStart;
  into.topicEnd = topicStart;
  into.patternStart = 0;
  into.patternEnd = 0;
  into.offset = -1;
  into.dueUs = -1;
  into.number = -1;
}

function indexOf(bytes: Uint8Array, byte: number, from: number, end: number): number {
  let at = from;
  while (at < end && bytes[at] !== byte) at++;
  return at;
}

/** Sets the cursor behind the digits. @returns -1 when there is none */
function readDigits(bytes: Uint8Array, from: number, end: number): number {
  let value = 0;
  let at = from;
  for (; at < end; at++) {
    const digit = bytes[at]! - 0x30;
    if (digit < 0 || digit > 9) break;
    value = value * 10 + digit;
  }
  cursor = at;
  return at === from ? -1 : value;
}

/** Sets the cursor behind the string. @returns where its bytes start */
function stringStart(bytes: Uint8Array, at: number): number {
  const head = bytes[at]!;
  let start = at + 1;
  let size = head & 0x1f;
  if (head === 0xd9) {
    size = bytes[at + 1]!;
    start = at + 2;
  } else if (head === 0xda) {
    size = readBytes(bytes, at + 1, 2);
    start = at + 3;
  } else if (head === 0xdb) {
    size = readBytes(bytes, at + 1, 4);
    start = at + 5;
  }
  cursor = start + size;
  return start;
}

/** Sets the cursor behind the integer. @returns -1 when it is none of the unsigned ones */
function readUnsigned(bytes: Uint8Array, at: number): number {
  const head = bytes[at]!;
  const size = head === 0xcc ? 1 : head === 0xcd ? 2 : head === 0xce ? 4 : head === 0xcf ? 8 : 0;
  cursor = at + 1 + size;
  if (size > 0) return readBytes(bytes, at + 1, size);
  return head < 0x80 ? head : -1;
}

function readBytes(bytes: Uint8Array, from: number, size: number): number {
  let value = 0;
  for (let i = 0; i < size; i++) value = value * 256 + bytes[from + i]!;
  return value;
}
