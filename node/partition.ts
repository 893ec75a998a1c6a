import { contains, intersects, isPattern, matches } from '../protocol/topic.js';

/** Subscriptions of one session that are served by one channel. */
export interface Group {
  /** The channel's key: the topic, the pattern, or the patterns joined by `|`. */
  readonly key: string;
  /** What the channel listens to: the topic, or the maximal patterns, sorted. */
  readonly filters: readonly string[];
  /** The subscriptions that it covers. */
  readonly members: readonly string[];
}

/**
 * Splits a session's subscriptions of one namespace so that each message reaches the session through exactly one channel: what
 * another subscription contains rides along with it, and patterns that overlap without containing each other share a group.
 * The groups are disjoint as sets of topics.
 */
export function partition(filters: readonly string[]): Group[] {
  const patterns = filters.filter(isPattern);
  if (patterns.length === 0) {
    return filters.map((topic) => ({ key: topic, filters: [topic], members: [topic] }));
  }
  const maximal = patterns.filter((p) => !patterns.some((other) => other !== p && contains(other, p)));
  const groups = components(maximal).map((sorted) => ({
    key: sorted.join('|'),
    filters: sorted,
    members: filters.filter((f) => sorted.some((p) => contains(p, f))),
  }));
  const exact = filters.filter((f) => !isPattern(f) && !maximal.some((p) => matches(p, f)));
  return [...groups, ...exact.map((topic) => ({ key: topic, filters: [topic], members: [topic] }))];
}

/** Connected components of the relation "some topic is matched by both", each sorted. */
function components(patterns: readonly string[]): string[][] {
  const open = new Set(patterns);
  const found: string[][] = [];
  for (const start of patterns) {
    if (!open.delete(start)) continue;
    const component = [start];
    // Grows while it is walked.
    for (const member of component) {
      for (const other of open) {
        if (intersects(member, other)) {
          open.delete(other);
          component.push(other);
        }
      }
    }
    found.push(component.sort());
  }
  return found;
}
