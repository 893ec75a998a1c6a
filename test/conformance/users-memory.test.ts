import { createMemoryUsers } from '../../broker/memory-users.js';
import { createTestClock } from '../support/test-clock.js';
import { directQueueConformance } from './direct-queue-suite.js';
import { sessionStoreConformance } from './session-store-suite.js';
import type { UsersEngine } from './users-engine.js';

const clock = createTestClock();

const memory: UsersEngine = {
  clock,
  make: ({ queueMax }) => {
    const { sessions, queue } = createMemoryUsers({ now: clock.now, queueMax });
    return Promise.resolve({ sessions, queue, dispose: () => Promise.resolve() });
  },
};

sessionStoreConformance('memory', memory);
directQueueConformance('memory', memory);
