import { createMemoryBus } from '../../broker/bus-memory.js';
import { createTestClock } from '../support/test-clock.js';
import { topicBusConformance } from './topic-bus-suite.js';

const clock = createTestClock();

topicBusConformance('memory', {
  clock,
  make: (namespaces) => {
    const bus = createMemoryBus({ namespaces, now: clock.now });
    return Promise.resolve({ nodes: [bus], dispose: () => bus.stop() });
  },
});
