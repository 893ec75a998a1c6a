import { createMemoryBus } from '../broker/bus-memory.js';
import { createNatsBus } from '../broker/bus-nats.js';
import type { TopicBus } from '../broker/bus.js';
import { createAloneCluster } from '../broker/cluster-alone.js';
import { createNatsCluster } from '../broker/cluster-nats.js';
import type { Cluster } from '../broker/cluster.js';
import type { DirectQueue } from '../broker/direct-queue.js';
import { createMemoryUsers } from '../broker/memory-users.js';
import type { Namespaces } from '../broker/namespaces.js';
import { NatsLink } from '../broker/nats-link.js';
import { RedisLink } from '../broker/redis-link.js';
import { createRedisUsers } from '../broker/redis-users.js';
import type { SessionStore } from '../broker/sessions.js';
import { createAbsentUsers } from '../broker/users-absent.js';
import type { Config } from './config.js';
import type { Logger } from './log.js';

/** What a node runs on. Nothing of it is started yet. */
export interface Engines {
  readonly bus: TopicBus;
  readonly store: SessionStore;
  readonly queue: DirectQueue;
  readonly cluster: Cluster;
  /** False on a cluster without Redis: presence and direct messages are answered 501, and statistics count no users. */
  readonly hasUsers: boolean;
  /** The servers that the node is connected to, by name, and whether each is in reach. */
  readonly links: Readonly<Record<string, () => boolean>>;
  /** Messages of the cluster so far that were not of its protocol. */
  ignoredMessages(): number;
  /** Leaves the servers, after the engines were stopped. */
  close(): Promise<void>;
}

/** @throws BrokerError `unavailable` when NATS cannot be reached */
export async function openEngines(
  config: Config,
  nodeId: string,
  namespaces: Namespaces,
  log: Logger,
): Promise<Engines> {
  return config.engine === 'embedded'
    ? embeddedEngines(config, nodeId, namespaces)
    : clusterEngines(config, nodeId, namespaces, log);
}

function embeddedEngines(config: Config, nodeId: string, namespaces: Namespaces): Engines {
  const { queue, sessions } = createMemoryUsers({ queueMax: config.directQueueMax });
  return {
    bus: createMemoryBus({ namespaces, storeBytesMax: config.storeBytes }),
    store: sessions,
    queue,
    cluster: createAloneCluster(nodeId),
    hasUsers: true,
    links: {},
    ignoredMessages: () => 0,
    close: () => Promise.resolve(),
  };
}

async function clusterEngines(
  config: Config,
  nodeId: string,
  namespaces: Namespaces,
  log: Logger,
): Promise<Engines> {
  const { natsCreds, natsTlsCa, prefix } = config;
  const link = await NatsLink.open({
    servers: config.natsUrl,
    name: nodeId,
    ...(natsCreds !== undefined && { creds: natsCreds }),
    ...(natsTlsCa !== undefined && { tlsCa: natsTlsCa }),
  });
  const cluster = createNatsCluster({ link, prefix, nodeId, log });
  const bus = createNatsBus({
    link,
    namespaces,
    prefix,
    replicas: config.natsReplicas,
    auditSec: config.auditSec,
    onFault: (error) => log.warn({ err: error }, 'a fault of NATS that heals by itself'),
  });
  const redis = config.redisUrl.length === 0 ? undefined : openRedis(config, nodeId, log);
  const users =
    redis === undefined
      ? createAbsentUsers()
      : createRedisUsers({
          link: redis,
          prefix,
          queueMax: config.directQueueMax,
          isDead: (id) => cluster.isDead(id),
          onUnreadable: (key, field) =>
            log.warn({ key, field }, 'a value in Redis does not parse; it stays as it is'),
        });
  return {
    bus,
    store: users.sessions,
    queue: users.queue,
    cluster,
    hasUsers: redis !== undefined,
    links: {
      nats: () => link.connected,
      ...(redis !== undefined && { redis: () => redis.state === 'ready' }),
    },
    ignoredMessages: () => cluster.ignored,
    async close() {
      await redis?.close();
      await link.close();
    },
  };
}

function openRedis(config: Config, nodeId: string, log: Logger): RedisLink {
  return new RedisLink({
    urls: config.redisUrl,
    name: nodeId,
    onState: (state, cause) => log.warn({ state, err: cause }, 'the state of Redis changed'),
  });
}
