import { createRedisDirectQueue } from './direct-queue-redis.js';
import { directQueueMax, type DirectQueue } from './direct-queue.js';
import { RedisUserKeys, type RedisUsersOptions } from './redis-user-keys.js';
import { createRedisSessions } from './sessions-redis.js';
import type { SessionStore } from './sessions.js';

export type { RedisUsersOptions } from './redis-user-keys.js';

export interface RedisUsers {
  readonly sessions: SessionStore;
  readonly queue: DirectQueue;
}

/** Sessions and direct messages of a whole cluster of nodes: two views of the same keys. */
export function createRedisUsers(options: RedisUsersOptions): RedisUsers {
  const shared = new RedisUserKeys(options);
  return {
    sessions: createRedisSessions(options.link, shared),
    queue: createRedisDirectQueue(options.link, shared, options.queueMax ?? directQueueMax),
  };
}
