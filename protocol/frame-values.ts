import { errorCodes, type ErrorCode } from './codes.js';
import type { SubscribedTopic, TopicRequest } from './frames.js';
import { grammarLimits } from './limits.js';
import { isOffset } from './position.js';
import { parseTopicRequest } from './topic-request.js';

/** Readers of single values out of decoded frames. Each gives `undefined` for what it does not take. */

const idSyntax = new RegExp(`^[^\\u0000-\\u001f\\u007f]{1,${grammarLimits.messageIdCharsMax}}$`);
const knownCodes: ReadonlySet<string> = new Set(errorCodes);

export function readText(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** A safe integer of 0 or more: offsets, ids, request numbers. */
export function readOffset(value: unknown): number | undefined {
  return isOffset(value) ? value : undefined;
}

export function readNumber(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

export function readBoolean(value: unknown): boolean | undefined {
  return typeof value === 'boolean' ? value : undefined;
}

/** Control characters are refused because an id may travel in a header of the message. */
export function readMessageId(value: unknown): string | undefined {
  return typeof value === 'string' && idSyntax.test(value) ? value : undefined;
}

/** A code this version does not know reads as `internal`, so that a newer node can add one. */
export function readErrorCode(value: unknown): ErrorCode | undefined {
  if (typeof value !== 'string') return undefined;
  return isErrorCode(value) ? value : 'internal';
}

export function readList<T>(
  value: unknown,
  read: (entry: unknown) => T | undefined,
): readonly T[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const entries: T[] = [];
  for (const entry of value as readonly unknown[]) {
    const checked = read(entry);
    if (checked === undefined) return undefined;
    entries.push(checked);
  }
  return entries;
}

/** An entry of `subscribe`: a string is `topic` or `topic@epoch:offset`. The topic's grammar is not checked. */
export function readTopicRequest(value: unknown): TopicRequest | undefined {
  if (typeof value === 'string') {
    const request = parseTopicRequest(value);
    return request.ok ? request.value : undefined;
  }
  const entry = readMap(value);
  const topic = entry?.get('topic');
  if (entry === undefined || typeof topic !== 'string') return undefined;
  const epoch = entry.get('epoch') ?? undefined;
  const offset = entry.get('offset') ?? undefined;
  const last = entry.get('last') ?? undefined;
  if (epoch !== undefined && typeof epoch !== 'string') return undefined;
  if (offset !== undefined && !isOffset(offset)) return undefined;
  if (last !== undefined && !isOffset(last)) return undefined;
  return {
    topic,
    ...(epoch === undefined ? {} : { epoch }),
    ...(offset === undefined ? {} : { offset }),
    ...(last === undefined ? {} : { last }),
  };
}

export function readSubscribedTopic(value: unknown): SubscribedTopic | undefined {
  const entry = readMap(value);
  const topic = entry?.get('topic');
  if (entry === undefined || typeof topic !== 'string') return undefined;
  const error = entry.get('error') ?? undefined;
  if (error !== undefined) {
    const code = readErrorCode(error);
    return code === undefined ? undefined : { topic, error: code };
  }
  const epoch = entry.get('epoch') ?? undefined;
  if (epoch === undefined) return { topic };
  const offset = entry.get('offset');
  const recovered = entry.get('recovered');
  if (typeof epoch !== 'string' || !isOffset(offset) || typeof recovered !== 'boolean') return undefined;
  return { topic, epoch, offset, recovered };
}

/** `Object.fromEntries` defines own properties: a namespace may well be called `__proto__`. */
export function readFloors(value: unknown): Readonly<Record<string, string>> | undefined {
  const entries = readMap(value);
  if (entries === undefined) return undefined;
  const floors: [string, string][] = [];
  for (const [namespace, position] of entries) {
    if (typeof namespace !== 'string' || typeof position !== 'string') return undefined;
    floors.push([namespace, position]);
  }
  return Object.fromEntries(floors);
}

/** Objects of JSON and maps of MessagePack alike. Only own properties count. */
function readMap(value: unknown): ReadonlyMap<unknown, unknown> | undefined {
  if (value instanceof Map) return value;
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject && !ArrayBuffer.isView(value) ? new Map(Object.entries(value)) : undefined;
}

function isErrorCode(text: string): text is ErrorCode {
  return knownCodes.has(text);
}
