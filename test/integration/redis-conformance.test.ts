import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe } from 'vitest';
import { RedisLink } from '../../broker/redis-link.js';
import { createRedisUsers } from '../../broker/redis-users.js';
import { directQueueConformance } from '../conformance/direct-queue-suite.js';
import { sessionStoreConformance } from '../conformance/session-store-suite.js';
import { startRedis, startRedisCluster, type RedisServers } from '../support/servers/redis-kit.js';

/** Runs both suites on servers that live as long as the block; each test has a prefix, so a table, of its own. */
function conformance(name: string, start: () => Promise<RedisServers>): void {
  describe(name, () => {
    let servers: RedisServers;
    let link: RedisLink;

    beforeAll(async () => {
      servers = await start();
      link = new RedisLink({ urls: servers.urls });
    });

    afterAll(async () => {
      await link.close();
      await servers.stop();
    });

    const engine = {
      make: ({ queueMax }: { queueMax: number }) => {
        const users = createRedisUsers({ link, prefix: `test-${randomUUID()}`, queueMax });
        return Promise.resolve({ ...users, dispose: () => Promise.resolve() });
      },
    };
    sessionStoreConformance(name, engine);
    directQueueConformance(name, engine);
  });
}

conformance('plain Redis', startRedis);
conformance('Redis Cluster', startRedisCluster);
