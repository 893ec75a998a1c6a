import type { RedisServers } from './redis-kit.js';

/** Of a cluster as the kit starts it, the first three are the masters; a single server is its own. */
export function mastersOf({ nodes }: RedisServers): RedisServers['nodes'] {
  return nodes.length === 6 ? nodes.slice(0, 3) : nodes;
}

/** Bytes that the masters hold for data: all that is allocated, without buffers of clients and of replication, which have other reasons to grow. */
export async function redisDataBytes(redis: RedisServers): Promise<number> {
  const infos = await Promise.all(mastersOf(redis).map((node) => node.call('INFO', 'memory')));
  return infos.reduce((total, info) => total + dataBytesIn(info), 0);
}

/** @param info the answer to `INFO memory` */
export function dataBytesIn(info: string): number {
  const fieldOf = (name: string): number | undefined => {
    const match = new RegExp(`^${name}:(\\d+)`, 'm').exec(info);
    return match === null ? undefined : Number(match[1]);
  };
  const used = fieldOf('used_memory');
  if (used === undefined) throw new Error('Redis does not say how much memory it uses');
  // Since 7.0 replicas and the backlog share their buffers; before, they are counted apart.
  const replication =
    fieldOf('mem_total_replication_buffers') ??
    (fieldOf('mem_replication_backlog') ?? 0) + (fieldOf('mem_clients_slaves') ?? 0);
  return used - replication - (fieldOf('mem_clients_normal') ?? 0) - (fieldOf('mem_cluster_links') ?? 0);
}

/** Calls of commands so far that clients made for their own sake, over the masters; those that scripts make are counted by Redis like any other. */
export async function redisCommands(redis: RedisServers): Promise<number> {
  const infos = await Promise.all(mastersOf(redis).map((node) => node.call('INFO', 'commandstats')));
  return infos.reduce((total, info) => total + commandsIn(info), 0);
}

/** What replicas, the bench itself and the clients' look at the cluster ask. */
const housekeeping = new Set([
  'info',
  'replconf',
  'ping',
  'psync',
  'client',
  'cluster',
  'hello',
  'auth',
  'select',
]);

/** @param info the answer to `INFO commandstats` */
export function commandsIn(info: string): number {
  let total = 0;
  for (const [, name = '', calls] of info.matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)) {
    if (!housekeeping.has(name.split('|')[0] ?? '')) total += Number(calls);
  }
  return total;
}
