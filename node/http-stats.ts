import { BrokerError } from '../broker/errors.js';
import type { SessionStore } from '../broker/sessions.js';
import { authoriseAdmin } from './http-auth.js';
import { describeNode } from './http-cluster.js';
import type { Exchange } from './http-exchange.js';
import type { HttpServices } from './http-services.js';
import { hotTopicsMax } from './node-stats.js';
import type { HotTopic, NodeStats } from './peer-commands.js';

/**
 * `GET /v1/stats`: what the nodes have counted since each started, and the hottest topics of all of them. All of it is told without Redis
 * as well, but for `users`, which is absent then.
 */
export async function stats(exchange: Exchange, services: HttpServices): Promise<void> {
  if ((await authoriseAdmin(exchange, services)) === undefined) return;
  const { peers, store, hasUsers } = services;
  const [{ missing, value: counted }, users] = await Promise.all([
    peers.stats(),
    hasUsers ? onlineIfKnown(store) : undefined,
  ]);
  const byNode = new Map(counted.map((node) => [node.id, node]));
  const beacons = peers.nodes();
  const nodes = beacons.map((beacon) => {
    const own = byNode.get(beacon.id);
    return {
      ...describeNode(beacon, services),
      ...(own !== undefined && { counters: own.counters, closed: own.closed }),
    };
  });
  exchange.json(200, {
    ...(users !== undefined && { users }),
    connections: beacons.reduce((sum, node) => sum + node.connections, 0),
    nodes,
    topics: hottest(counted),
    ...(missing > 0 && { missingNodes: missing }),
  });
}

/** An outage of Redis is when somebody wants to see the rest. */
async function onlineIfKnown(store: SessionStore): Promise<number | undefined> {
  try {
    return await store.onlineCount();
  } catch (error) {
    if (error instanceof BrokerError && error.code === 'unavailable') return undefined;
    throw error;
  }
}

/** The hottest topics of several nodes as one list. A message counts on each node that hands it on, so its rate is that of the busiest. */
export function hottest(counted: readonly Pick<NodeStats, 'topics'>[]): HotTopic[] {
  const byKey = new Map<string, HotTopic>();
  for (const topic of counted.flatMap(({ topics }) => topics)) {
    const key = topic.filters.join(' ');
    const other = byKey.get(key);
    byKey.set(key, other === undefined ? topic : merge(topic, other));
  }
  return [...byKey.values()]
    .sort((a, b) => b.messagesPerSec - a.messagesPerSec || b.messages - a.messages)
    .slice(0, hotTopicsMax);
}

function merge(a: HotTopic, b: HotTopic): HotTopic {
  return {
    filters: a.filters,
    messagesPerSec: Math.max(a.messagesPerSec, b.messagesPerSec),
    messages: Math.max(a.messages, b.messages),
    subscribers: a.subscribers + b.subscribers,
  };
}
