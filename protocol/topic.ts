import { grammarLimits } from './limits.js';
import { failure, success, type Result } from './result.js';

/**
 * Topic grammar. A topic is 1–8 tokens of `[A-Za-z0-9_:=-]+` joined by dots, 200 bytes at most. A pattern is a topic in
 * which a token may be `*` (one token) and the last may be `>` (one or more). The first token of either is
 * concrete: it names the namespace.
 */

const tokenSyntax = /^[A-Za-z0-9_:=-]+$/;
/** Of a whole topic without wildcards: what nearly all are, found valid without being cut up. */
const topicSyntax = new RegExp(
  `^[A-Za-z0-9_:=-]+(?:\\.[A-Za-z0-9_:=-]+){0,${grammarLimits.topicTokensMax - 1}}$`,
);
const userIdSyntax = new RegExp(`^[A-Za-z0-9_.:=@-]{1,${grammarLimits.userIdCharsMax}}$`);

/** Reads a concrete topic, as publishers name it. */
export function parseTopic(text: string): Result<string> {
  return check(text, false);
}

/** Reads what a client may subscribe to: a topic or a pattern. */
export function parseFilter(text: string): Result<string> {
  return check(text, true);
}

/** Reads a pattern of a grant: like a filter, but `>` alone (everything) and a wildcard as first token are allowed. */
export function parseGrant(text: string): Result<string> {
  if (text === '>' || text === '*') return success(text);
  if (text.startsWith('*.')) {
    const rest = check(`x${text.slice(1)}`, true);
    return rest.ok ? success(text) : rest;
  }
  return check(text, true);
}

/** Whether a valid filter holds a wildcard. */
export function isPattern(filter: string): boolean {
  return filter.endsWith('>') || filter.includes('*');
}

export function isUserId(text: string): boolean {
  return userIdSyntax.test(text);
}

/** The first token of a topic or pattern. */
export function namespaceOf(filter: string): string {
  const dot = filter.indexOf('.');
  return dot < 0 ? filter : filter.slice(0, dot);
}

/** Whether a pattern (or topic) matches a concrete topic. Both must be valid. */
export function matches(pattern: string, topic: string): boolean {
  return contains(pattern, topic);
}

/** Whether every topic that `inner` matches is matched by `outer` too. Both must be valid. */
export function contains(outer: string, inner: string): boolean {
  if (outer === inner) return true;
  const wide = outer.split('.');
  const narrow = inner.split('.');
  for (let i = 0; i < wide.length; i++) {
    const token = narrow[i];
    if (token === undefined) return false;
    if (wide[i] === '>') return true;
    if (token === '>') return false;
    if (wide[i] !== '*' && wide[i] !== token) return false;
  }
  return wide.length === narrow.length;
}

/** Whether some topic is matched by both. Both must be valid. */
export function intersects(a: string, b: string): boolean {
  const left = a.split('.');
  const right = b.split('.');
  for (let i = 0; ; i++) {
    const l = left[i];
    const r = right[i];
    if (l === undefined || r === undefined) return l === r;
    if (l === '>' || r === '>') return true;
    if (l !== r && l !== '*' && r !== '*') return false;
  }
}

function check(text: string, wildcards: boolean): Result<string> {
  if (text.length === 0) return failure('invalid_topic', 'a topic is not empty');
  if (text.length > grammarLimits.topicBytesMax) {
    return failure('invalid_topic', `a topic has at most ${grammarLimits.topicBytesMax} bytes`);
  }
  if (topicSyntax.test(text)) return success(text);
  const tokens = text.split('.');
  if (tokens.length > grammarLimits.topicTokensMax) {
    return failure('invalid_topic', `a topic has at most ${grammarLimits.topicTokensMax} tokens`);
  }
  for (const [i, token] of tokens.entries()) {
    if (tokenSyntax.test(token)) continue;
    if (wildcards && i > 0 && (token === '*' || (token === '>' && i === tokens.length - 1))) continue;
    return failure(
      'invalid_topic',
      `token ${i + 1} of the topic is not of [A-Za-z0-9_:=-]+${wildcardHint(token)}`,
    );
  }
  return success(text);
}

function wildcardHint(token: string): string {
  return token === '*' || token === '>' ? ' (a wildcard is not allowed there)' : '';
}
