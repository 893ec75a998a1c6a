import { startNats, startNatsCluster, type NatsServers } from '../servers/nats-kit.js';
import { startRedis, startRedisCluster, type RedisServers } from '../servers/redis-kit.js';

export interface ServersWanted {
  /** How many NATS servers; 3: a cluster whose streams have three replicas. */
  readonly nats?: 1 | 3;
  /** The start of the version wanted (`2.11`); the oldest that is installed unless given. */
  readonly natsVersion?: string;
  /** A Redis Cluster of three masters and three replicas, or one server. */
  readonly redis?: 'cluster' | 'one';
}

export interface Servers {
  readonly nats?: NatsServers;
  readonly redis?: RedisServers;
  /** Variables of a node that is to use them. */
  readonly env: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

/** Settles when all that is wanted runs. @throws Error when one of them cannot be started; none is left then */
export async function startServers(wanted: ServersWanted): Promise<Servers> {
  const { nats: size, natsVersion, redis: kind } = wanted;
  const version = natsVersion === undefined ? {} : { version: natsVersion };
  const [nats, redis] = await Promise.allSettled([startNatsServers(size, version), startRedisServers(kind)]);
  const stop = async (): Promise<void> => {
    const up: (NatsServers | RedisServers)[] = [];
    for (const one of [nats, redis]) if (one.status === 'fulfilled' && one.value) up.push(one.value);
    await Promise.all(up.map((one) => one.stop()));
  };
  if (nats.status === 'rejected' || redis.status === 'rejected') {
    await stop();
    throw nats.status === 'rejected' ? nats.reason : (redis as PromiseRejectedResult).reason;
  }
  return {
    ...(nats.value === undefined ? {} : { nats: nats.value }),
    ...(redis.value === undefined ? {} : { redis: redis.value }),
    env: {
      ...(nats.value === undefined ? {} : { TOPICAST_NATS_URL: nats.value.urls.join(',') }),
      ...(redis.value === undefined ? {} : { TOPICAST_REDIS_URL: redis.value.urls.join(',') }),
    },
    stop,
  };
}

async function startNatsServers(
  size: ServersWanted['nats'],
  settings: { readonly version?: string },
): Promise<NatsServers | undefined> {
  if (size === undefined) return undefined;
  return size === 1 ? startNats(settings) : startNatsCluster(size, settings);
}

async function startRedisServers(kind: ServersWanted['redis']): Promise<RedisServers | undefined> {
  if (kind === undefined) return undefined;
  return kind === 'one' ? startRedis() : startRedisCluster();
}
