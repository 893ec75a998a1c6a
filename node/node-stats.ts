import type { HotTopics } from './hot-topics.js';
import type { Counters } from './metrics.js';
import type { NodeStats } from './peer-commands.js';

/** Of each node; the whole cluster shows as many. */
export const hotTopicsMax = 20;

/** What one node tells of itself for `GET /v1/stats`. */
export function nodeStats(id: string, counters: Counters, hotTopics: Pick<HotTopics, 'top'>): NodeStats {
  const { closed, frameErrors, framesIn, published, refused, ...plain } = counters;
  return {
    id,
    counters: {
      ...plain,
      publishedLive: published.live,
      publishedDurable: published.durable,
      framesIn: sum(Object.values(framesIn)),
      frameErrors: sum(Object.values(frameErrors)),
      refused: sum(refused.values()),
    },
    closed: Object.fromEntries(closed),
    topics: hotTopics.top(hotTopicsMax),
  };
}

function sum(counts: Iterable<number>): number {
  let total = 0;
  for (const count of counts) total += count;
  return total;
}
