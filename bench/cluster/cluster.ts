import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startNode, type RunningNode } from '../demo/node-process.js';
import { startNatsCluster, type NatsServers } from '../servers/nats-kit.js';
import { startRedisCluster, type RedisServers } from '../servers/redis-kit.js';

export interface ClusterOptions {
  /** How many nodes, or the port of each (0: any). */
  readonly ports: readonly number[];
  /** Variables of every node on top of those that make it part of the cluster. */
  readonly env?: Readonly<Record<string, string>>;
  /** Told what is being started. */
  readonly progress?: (text: string) => void;
  readonly signal?: AbortSignal;
}

/** Everything that a cluster of Topicast needs, on one machine: three NATS servers, six Redis, and the nodes. */
export interface RunningCluster {
  readonly nats: NatsServers;
  readonly redis: RedisServers;
  readonly nodes: readonly RunningNode[];
  /** Rejects when a node ends by itself; never resolves. */
  readonly died: Promise<never>;
  /** Ends everything, nodes first, and removes the files of the servers. */
  stop(): Promise<void>;
}

const nodeEntry = join(projectRoot(), 'dist/node/main.js');

/** @throws Error when a server or node cannot be started, with what it wrote; the signal's reason when aborted. Nothing is left running then. */
export async function startCluster(options: ClusterOptions): Promise<RunningCluster> {
  const { progress = () => undefined, signal } = options;
  const undo: (() => Promise<void>)[] = [];
  const stop = async (): Promise<void> => {
    for (let step = undo.pop(); step !== undefined; step = undo.pop()) await step();
  };
  try {
    progress('starting 3 NATS servers with JetStream and a Redis Cluster of 3 masters and 3 replicas');
    const [nats, redis] = await bothOrNeither(startNatsCluster(3), startRedisCluster());
    undo.push(async () => {
      await Promise.all([nats.stop(), redis.stop()]);
    });
    signal?.throwIfAborted();
    progress(`starting ${options.ports.length} nodes`);
    const nodes: RunningNode[] = [];
    undo.push(async () => {
      await Promise.all(nodes.map((node) => node.stop()));
    });
    for (const [i, port] of options.ports.entries()) {
      // One after the other: the first makes the streams.
      nodes.push(await startNode(nodeEntry, nodeEnv(i, port, nats, redis, options.env)));
      signal?.throwIfAborted();
    }
    const died = Promise.race(nodes.map((node) => node.died));
    // Who cares awaits `died`; a node that is stopped before anybody does must not end the process as an unhandled rejection.
    died.catch(() => undefined);
    return { nats, redis, nodes, died, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function nodeEnv(
  index: number,
  port: number,
  nats: NatsServers,
  redis: RedisServers,
  more: Readonly<Record<string, string>> = {},
): Record<string, string> {
  // Each node prefers another server: an address list is tried in order.
  const turned = [
    ...nats.urls.slice(index % nats.urls.length),
    ...nats.urls.slice(0, index % nats.urls.length),
  ];
  return {
    TOPICAST_HOST: '127.0.0.1',
    TOPICAST_PORT: String(port),
    TOPICAST_NODE_NAME: `node${index + 1}`,
    TOPICAST_NATS_URL: turned.join(','),
    TOPICAST_REDIS_URL: redis.urls.join(','),
    ...more,
  };
}

/** Settles when both have; when one fails the other is stopped. */
async function bothOrNeither<A extends { stop(): Promise<void> }, B extends { stop(): Promise<void> }>(
  first: Promise<A>,
  second: Promise<B>,
): Promise<[A, B]> {
  const [a, b] = await Promise.allSettled([first, second]);
  if (a.status === 'fulfilled' && b.status === 'fulfilled') return [a.value, b.value];
  for (const one of [a, b]) if (one.status === 'fulfilled') await one.value.stop();
  throw a.status === 'rejected' ? a.reason : (b as PromiseRejectedResult).reason;
}

/** The nearest folder above this file that has a package.json: two up from the source, three from the build. */
function projectRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) {
    const above = dirname(folder);
    if (above === folder) throw new Error('no package.json above the cluster');
    folder = above;
  }
  return folder;
}
