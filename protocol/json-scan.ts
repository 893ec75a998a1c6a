import { grammarLimits } from './limits.js';
import { findJsonFault } from './json-fault.js';
import { failure, success, type Result } from './result.js';

/**
 * Finds raw spans inside JSON text. Everything here except `parseJson` wants text that `JSON.parse` accepts:
 * the scanners look only as closely as that allows. They are linear and do not recurse.
 */

/** A value's place in the text: `text.slice(start, end)`, without white space around it. */
export interface JsonSpan {
  readonly start: number;
  readonly end: number;
}

export interface JsonMember extends JsonSpan {
  /** Escapes resolved. */
  readonly key: string;
}

const quote = 0x22;
const comma = 0x2c;
const backslash = 0x5c;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/**
 * Reads any text as JSON. The failure says where it stops being JSON (line and column, from 1) and does not
 * repeat the text.
 */
export function parseJson(text: string): Result<unknown> {
  try {
    return success(JSON.parse(text) as unknown);
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    return failure('invalid_frame', `not JSON: ${describeFault(text, findJsonFault(text))}`);
  }
}

function describeFault(text: string, at: number): string {
  const before = text.slice(0, at);
  const line = before.split('\n').length;
  const column = at - before.lastIndexOf('\n');
  const what = at < text.length ? 'unexpected character' : 'unexpected end';
  return `${what} at line ${line}, column ${column}`;
}

/** The members of the object that starts at `at` (white space before it is skipped), in order, duplicates included. */
export function* members(text: string, at = 0): Generator<JsonMember, void, void> {
  let position = skipSpace(text, skipSpace(text, at) + 1);
  while (text.charCodeAt(position) === quote) {
    const keyEnd = stringEnd(text, position);
    const key = readString(text, position, keyEnd);
    const start = skipSpace(text, skipSpace(text, keyEnd) + 1);
    const end = valueEnd(text, start);
    yield { key, start, end };
    position = skipSpace(text, end);
    if (text.charCodeAt(position) !== comma) return;
    position = skipSpace(text, position + 1);
  }
}

/** The elements of the array that starts at `at` (white space before it is skipped), in order. */
export function* elements(text: string, at = 0): Generator<JsonSpan, void, void> {
  let start = skipSpace(text, skipSpace(text, at) + 1);
  if (text.charCodeAt(start) === closeBracket) return;
  for (;;) {
    const end = valueEnd(text, start);
    yield { start, end };
    const next = skipSpace(text, end);
    if (text.charCodeAt(next) !== comma) return;
    start = skipSpace(text, next + 1);
  }
}

/** Where the value that starts at `start` ends. */
export function valueEnd(text: string, start: number): number {
  const first = text.charCodeAt(start);
  if (first === quote) return stringEnd(text, start);
  if (first !== openBracket && first !== openBrace) return plainEnd(text, start);
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) at = stringEnd(text, at) - 1;
    else if (code === openBracket || code === openBrace) depth++;
    else if ((code === closeBracket || code === closeBrace) && --depth === 0) return at + 1;
  }
  return text.length;
}

/** Where the string whose opening quote is at `start` ends, after its closing quote. */
export function stringEnd(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let escapes = 0;
    while (text.charCodeAt(at - 1 - escapes) === backslash) escapes++;
    if (escapes % 2 === 0) return at + 1;
  }
  return text.length;
}

/** The string at `[start, end)`, quotes included, with its escapes resolved. */
export function readString(text: string, start: number, end: number): string {
  const inner = text.slice(start + 1, end - 1);
  return inner.includes('\\') ? (JSON.parse(text.slice(start, end)) as string) : inner;
}

/** The first place at or after `at` that is not JSON white space. */
export function skipSpace(text: string, at: number): number {
  let position = at;
  while (isSpace(text.charCodeAt(position))) position++;
  return position;
}

/** Whether arrays and objects nest deeper than `depthMax` (a plain value is 0 deep, `[]` is 1). */
export function isDeeperThan(text: string, depthMax: number = grammarLimits.payloadDepthMax): boolean {
  // Each level takes two brackets.
  if (text.length <= 2 * depthMax) return false;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) at = stringEnd(text, at) - 1;
    else if (code === openBracket || code === openBrace) {
      if (++depth > depthMax) return true;
    } else if (code === closeBracket || code === closeBrace) depth--;
  }
  return false;
}

/**
 * The same JSON on one line, for Server-Sent Events. Raw line breaks cannot be inside a JSON string, so all
 * of them stand between tokens. Returns the very text when it has none.
 */
export function singleLine(text: string): string {
  return text.includes('\n') || text.includes('\r') ? text.replace(/[\r\n]+/g, '') : text;
}

/** Where a number, `true`, `false` or `null` ends. */
function plainEnd(text: string, start: number): number {
  let at = start;
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === comma || code === closeBracket || code === closeBrace || isSpace(code)) break;
  }
  return at;
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}
