import { createMemoryDirectQueue } from './direct-queue-memory.js';
import { directQueueMax, type DirectQueue } from './direct-queue.js';
import { createMemorySessions } from './sessions-memory.js';
import type { SessionStore } from './sessions.js';
import { UserTable, type UserTableSizes } from './user-table.js';

export interface MemoryUsersOptions {
  /** ms since the Unix epoch. */
  readonly now?: () => number;
  /** Unacknowledged messages of one user. */
  readonly queueMax?: number;
}

export interface MemoryUsers {
  readonly sessions: SessionStore;
  readonly queue: DirectQueue;
  /** What is in memory at this moment. Of messages that nobody reads, some may have expired. */
  sizes(): UserTableSizes;
}

/** Sessions and direct messages of a node that is alone: two views of one table of users in this process. */
export function createMemoryUsers(options: MemoryUsersOptions = {}): MemoryUsers {
  const users = new UserTable(options.now ?? Date.now);
  return {
    sessions: createMemorySessions(users),
    queue: createMemoryDirectQueue(users, options.queueMax ?? directQueueMax),
    sizes: () => users.sizes(),
  };
}
