/** Numbers that look random and are the same for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * Draws whole numbers from 0 to `count` - 1, of which number i comes 1 / (i + 1)^`exponent` as often as 0: a few are popular, most are not.
 * @param exponent 0: all come equally often
 */
export function zipf(count: number, exponent: number, random: () => number): () => number {
  const ends = new Float64Array(count);
  let total = 0;
  for (let i = 0; i < count; i++) {
    total += 1 / (i + 1) ** exponent;
    ends[i] = total;
  }
  return () => {
    const at = random() * total;
    let [low, high] = [0, count - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((ends[middle] ?? 0) > at) high = middle;
      else low = middle + 1;
    }
    return low;
  };
}

export interface InterestOptions {
  readonly users: number;
  readonly topics: readonly string[];
  /** As many as there are at most. */
  readonly topicsPerUser: number;
  readonly exponent: number;
  readonly seed: number;
}

/** The topics of each user, each topic once. */
export function interestsOf(options: InterestOptions): string[][] {
  const { exponent, seed, topics, users } = options;
  const each = Math.min(options.topicsPerUser, topics.length);
  const draw = zipf(topics.length, exponent, seededRandom(seed));
  return Array.from({ length: users }, () => {
    const chosen = new Set<number>();
    for (let tries = 0; chosen.size < each && tries < each * triesPerTopic; tries++) chosen.add(draw());
    // The popular ones are taken soon; who wants nearly all topics gets the next ones.
    for (let i = 0; chosen.size < each; i++) chosen.add(i);
    return [...chosen].map((i) => topics[i] ?? '');
  });
}

/** How many nodes have a subscriber of each topic, when user i is on node `i % nodes`. */
export function hostsOf(interests: readonly (readonly string[])[], nodes: number): Map<string, number> {
  const hosts = new Map<string, Set<number>>();
  for (const [user, topics] of interests.entries()) {
    for (const topic of topics) {
      const known = hosts.get(topic) ?? new Set();
      known.add(user % nodes);
      hosts.set(topic, known);
    }
  }
  return new Map([...hosts].map(([topic, on]) => [topic, on.size]));
}

const triesPerTopic = 20;
