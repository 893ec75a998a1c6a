import { contains, isPattern, isUserId, parseFilter, parseGrant } from '../protocol/topic.js';

/**
 * What the bearer of a token may do. No claim, no right: each right comes from its own list, and none implies another.
 */
export interface Grants {
  /** Whether a valid topic or pattern may be subscribed to: a grant must contain it, meeting it is not enough. */
  canSubscribe(filter: string): boolean;
  /** Whether messages may be published to a valid concrete topic. */
  canPublish(topic: string): boolean;
  /** Whether direct messages may be sent to a user. */
  canPush(userId: string): boolean;
  /** The routes of an operator: sessions of users, presence, nodes, metrics, console. No right to topics or to push. */
  readonly admin: boolean;
}

export const noGrants: Grants = {
  canSubscribe: () => false,
  canPublish: () => false,
  canPush: () => false,
  admin: false,
};

export const allGrants: Grants = {
  canSubscribe: () => true,
  canPublish: () => true,
  canPush: () => true,
  admin: true,
};

/**
 * Reads the `can` claim, `{"sub": [patterns], "pub": [patterns], "push": [user ids or "*"], "admin": bool}`. Whatever in it is malformed
 * grants nothing and does not throw.
 * @param topics topics that the token subscribes to by itself (`readTopics`): they are granted for subscribing
 */
export function readGrants(can: unknown, topics: readonly string[] = []): Grants {
  const claim = isRecord(can) ? can : {};
  const subscribe = createPatternSet([...patterns(own(claim, 'sub')), ...topics]);
  const publish = createPatternSet(patterns(own(claim, 'pub')));
  const users = new Set(texts(own(claim, 'push')).filter((user) => user === '*' || isUserId(user)));
  return {
    canSubscribe: subscribe,
    canPublish: publish,
    canPush: (userId) => users.has('*') || users.has(userId),
    admin: own(claim, 'admin') === true,
  };
}

/** One for all: most tokens have none. */
const noTopics: readonly string[] = [];

/** Reads the `topics` claim: the valid topics and patterns of it, each once. */
export function readTopics(topics: unknown): readonly string[] {
  if (topics === undefined) return noTopics;
  return [...new Set(texts(topics).filter((topic) => parseFilter(topic).ok))];
}

/** Exact topics are looked up, so that a token full of them costs no scan per subscription. */
function createPatternSet(granted: readonly string[]): (filter: string) => boolean {
  const exact = new Set(granted);
  const wild = [...exact].filter(isPattern);
  if (exact.has('>')) return () => true;
  return (filter) => exact.has(filter) || wild.some((pattern) => contains(pattern, filter));
}

function patterns(value: unknown): string[] {
  return texts(value).filter((text) => parseGrant(text).ok);
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : [];
}

function own(record: Readonly<Record<string, unknown>>, key: string): unknown {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
