import { compare } from './compare.js';
import { connect } from './connect.js';
import { direct } from './direct.js';
import { durablePublish } from './durable-publish.js';
import { fanout } from './fanout.js';
import { grow } from './grow.js';
import { idle } from './idle.js';
import { messages } from './messages.js';
import { million } from './million.js';
import { mixed } from './mixed.js';
import { redisMemory } from './redis-memory.js';
import { resume } from './resume.js';
import type { Scenario } from './scenario.js';
import { storm } from './storm.js';
import { topics } from './topics.js';

/** Every scenario, in the order in which they are listed. */
export const scenarios: readonly Scenario[] = [
  fanout,
  compare,
  mixed,
  topics,
  idle,
  connect,
  storm,
  resume,
  direct,
  durablePublish,
  messages,
  redisMemory,
  grow,
  million,
];
