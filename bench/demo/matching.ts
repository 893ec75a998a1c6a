/**
 * The checker's own reading of topics and values, written from the protocol page rather than from the broker's code: a fault there must not be
 * repeated here.
 */

/** The namespaces that are durable out of the box. */
const durableTopic = /^(?:coupon|item)(?:\.|$)/;

export function isDurable(topic: string): boolean {
  return durableTopic.test(topic);
}

/** The topics among `topics` that one of the filters names or matches. */
export function matchedTopics(filters: readonly string[], topics: Iterable<string>): Set<string> {
  const pattern = new RegExp(`^(?:${filters.map(filterSource).join('|')})$`);
  return new Set([...topics].filter((topic) => filters.length > 0 && pattern.test(topic)));
}

/** `*` stands for one token, a last `>` for one or more; no other character that a topic may hold means anything to a RegExp but the dot. */
function filterSource(filter: string): string {
  return filter.replaceAll('.', '\\.').replaceAll('*', '[^.]+').replace(/>$/, '.+');
}

/** JSON with the keys sorted, so that two values are equal exactly when their texts are. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) => {
    if (inner === null || typeof inner !== 'object' || Array.isArray(inner)) return inner;
    return Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}
