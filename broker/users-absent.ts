import type { DirectQueue } from './direct-queue.js';
import { unavailable } from './errors.js';
import type { SessionStore } from './sessions.js';

/**
 * A cluster without Redis: topics only. Sessions are recorded nowhere, so there is no presence, and nothing can be pushed to a user. The node answers
 * 501 to those who ask; what still gets here is refused.
 */
export function createAbsentUsers(): { readonly sessions: SessionStore; readonly queue: DirectQueue } {
  const refuse = (): Promise<never> => Promise.reject(unavailable('this cluster has no Redis: topics only'));
  const done = (): Promise<void> => Promise.resolve();
  return {
    sessions: {
      start: done,
      stop: done,
      register: () => Promise.resolve({ pending: [], newest: 0 }),
      refresh: () => Promise.resolve(new Map<string, number | Error>()),
      remove: done,
      sessionsOf: refuse,
      onlineCount: refuse,
      onlineUsers: refuse,
    },
    queue: { push: refuse, pending: () => Promise.resolve([]), acknowledge: () => Promise.resolve(0) },
  };
}
