const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The text of UTF-8 bytes; `undefined` when they are not UTF-8. A byte order mark is kept as a character. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}

/**
 * Whether `bytes[start, end)` is UTF-8 (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF).
 * `end` must be within `bytes`. Allocates nothing.
 */
export function isUtf8(bytes: Uint8Array, start: number, end: number): boolean {
  let at = start;
  while (at < end) {
    const lead = bytes[at] ?? 0;
    if (lead < 0x80) {
      at++;
      continue;
    }
    const more = continuationBytes(lead);
    if (more < 0 || at + more >= end) return false;
    const second = bytes[at + 1] ?? 0;
    if (second < lowestSecond(lead) || second > highestSecond(lead)) return false;
    for (let i = 2; i <= more; i++) {
      if (((bytes[at + i] ?? 0) & 0xc0) !== 0x80) return false;
    }
    at += more + 1;
  }
  return true;
}

/** How many bytes follow a lead byte above 0x7f; -1 when it cannot lead. */
function continuationBytes(lead: number): number {
  if (lead < 0xc2 || lead > 0xf4) return -1;
  if (lead < 0xe0) return 1;
  return lead < 0xf0 ? 2 : 3;
}

function lowestSecond(lead: number): number {
  if (lead === 0xe0) return 0xa0;
  return lead === 0xf0 ? 0x90 : 0x80;
}

function highestSecond(lead: number): number {
  if (lead === 0xed) return 0x9f;
  return lead === 0xf4 ? 0x8f : 0xbf;
}

/** The UTF-8 length of a text. A lone surrogate counts 3, as the U+FFFD that an encoder writes for it. */
export function utf8Length(text: string): number {
  let length = text.length;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x80) continue;
    if (code < 0x800) {
      length++;
      continue;
    }
    length += 2;
    const isPair = code >= 0xd800 && code < 0xdc00 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00;
    // A pair is two units and four bytes: 2 of `text.length` and the 2 just added.
    if (isPair) i++;
  }
  return length;
}
