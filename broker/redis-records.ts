import { members } from '../protocol/json-scan.js';
import type { Payload } from '../protocol/payload.js';
import { sessionTtlSec, type DirectMessage, type SessionRecord } from './sessions.js';

/**
 * The text of values in Redis. Readers take any JSON object that has what they need, ignore other members, and answer
 * undefined for all else. A text that has `until` (ms since the Unix epoch) starts with it, where the scripts look for it first.
 */

const ttlMs = sessionTtlSec * 1000;
/** A session whose last frame is no older lives for its TTL from then on, which the text says already. */
const freshMs = 60_000;

/**
 * Until when a session lives that is written now, ms since the Unix epoch: for a TTL, at most a minute less. Mostly that follows from `active`
 * and need not be stored.
 */
export function livesUntil({ active }: SessionRecord, now: number): number {
  return (Math.abs(now - active) <= freshMs ? wholeSec(active) * 1000 : now) + ttlMs;
}

/**
 * `login` in seconds since the Unix epoch and `active` in seconds after it, when there are any: Redis hands out memory in steps of 16 bytes, and
 * with these a user with one session fits in one step less than with two times in ms.
 * @param until as `livesUntil` told
 */
export function writeSession({ login, active, device }: SessionRecord, until: number): string {
  const idleSince = wholeSec(active);
  const after = idleSince - wholeSec(login);
  return JSON.stringify({
    ...(until === idleSince * 1000 + ttlMs ? {} : { until }),
    login: wholeSec(login),
    ...(after === 0 ? {} : { active: after }),
    ...(device === undefined ? {} : { device }),
  });
}

export interface StoredSession {
  readonly record: SessionRecord;
  /** ms since the Unix epoch. */
  readonly until: number;
}

export function readSession(userId: string, id: string, text: string): StoredSession | undefined {
  const value = parseObject(text);
  if (value === undefined) return undefined;
  const { device, until } = value;
  if (typeof value['login'] !== 'number' || !['number', 'undefined'].includes(typeof value['active'])) {
    return undefined;
  }
  const login = isMs(value['login']) ? value['login'] : value['login'] * 1000;
  const after = typeof value['active'] === 'number' ? value['active'] : 0;
  const active = isMs(after) ? after : login + after * 1000;
  const record = { userId, id, login, active, ...(typeof device === 'string' ? { device } : {}) };
  return { record, until: typeof until === 'number' ? until : active + ttlMs };
}

function wholeSec(ms: number): number {
  return Math.floor(ms / 1000);
}

/** Both times may also be in ms since the Unix epoch. */
function isMs(time: number): boolean {
  return time >= 1e11;
}

/** What stands after the head of a queued message, which the script writes: `"json":…}`, untouched, or `"msgpack":"<base64>"}`. */
export function writePayload(payload: Payload): string {
  if (payload.format === 'json') return `"json":${payload.text}}`;
  const { buffer, byteOffset, byteLength } = payload.bytes;
  return `"msgpack":"${Buffer.from(buffer, byteOffset, byteLength).toString('base64')}"}`;
}

export function readMessage(id: number, text: string): DirectMessage | undefined {
  const value = parseObject(text);
  if (value === undefined) return undefined;
  if (typeof value['msgpack'] === 'string') {
    const bytes = readBase64(value['msgpack']);
    return bytes && { id, payload: { format: 'msgpack', bytes } };
  }
  for (const { key, start, end } of members(text)) {
    // The very text: parsing would round large numbers.
    if (key === 'json') return { id, payload: { format: 'json', text: text.slice(start, end) } };
  }
  return undefined;
}

function readBase64(text: string): Uint8Array | undefined {
  const bytes = Buffer.from(text, 'base64');
  if (bytes.length === 0 || bytes.toString('base64') !== text) return undefined;
  return new Uint8Array(bytes);
}

function parseObject(text: string): Record<string, unknown> | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined; // The caller counts it.
  }
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
}

/** A list of a reply: field, text, field, text … */
export function pairsOf(reply: unknown): [string, string][] {
  const list = listOf(reply);
  const pairs: [string, string][] = [];
  for (let i = 0; i + 1 < list.length; i += 2) pairs.push([String(list[i]), String(list[i + 1])]);
  return pairs;
}

/** @throws TypeError when the reply is not what the command answers */
export function listOf(reply: unknown): readonly unknown[] {
  if (!Array.isArray(reply)) throw new TypeError('Redis answered no list');
  return reply as unknown[];
}

/** @throws TypeError when the reply is not what the command answers */
export function numberOf(reply: unknown): number {
  const value = typeof reply === 'string' ? Number(reply) : reply;
  if (typeof value !== 'number' || !Number.isFinite(value)) throw new TypeError('Redis answered no number');
  return value;
}
