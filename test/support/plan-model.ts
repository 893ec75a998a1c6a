import type { Costs } from '../../bench/plan/costs.js';
import { demandOf } from '../../bench/plan/demand.js';
import { readInputs, type PlanInputs } from '../../bench/plan/inputs.js';
import type { PlanModel } from '../../bench/plan/nodes.js';

/** Round figures, so that the sums can be done in the head. */
export const round: Costs = {
  deliveryWriteUs: 3,
  deliveryMessageUs: 1,
  nodeUsPerSec: 10_000,
  messageUs: 10,
  messageWakeUs: 100,
  publishUs: 100,
  publishBatchedUs: 10,
  publishFrameUs: 20,
  publishWakeUs: 200,
  handshakeUs: 200,
  sessionUsPerSec: 1,
  pushUs: 100,
  beaconUs: 10,
  sessionBytes: 2000,
  subscriptionBytes: 100,
  hostedTopicBytes: 3000,
  ringMessageBytes: 200,
  nodeBaseBytes: 1e8,
  coldReadMs: 4,
  natsPublishUs: 10,
  natsPublishReplicatedUs: 60,
  natsMessageUs: 2,
  natsSubscriptionBytes: 1000,
  natsSubjectBytes: 200,
  natsStoredBytes: 100,
  natsBaseBytes: 5e7,
  natsStreamPerSec: 25_000,
  redisUserBytes: 300,
  redisOnlineBytes: 100,
  redisSessionBytes: 80,
  redisQueuedBytes: 300,
  redisConnectUs: 50,
  redisRefreshUs: 20,
  redisRefreshesPerMin: 0.3,
  redisCallsPerRefresh: 0.1,
  redisPushUs: 60,
};

export function modelOf(changed: Partial<PlanInputs> = {}, costs: Costs = round): PlanModel {
  const inputs = { ...readInputs(undefined, {}).inputs, ...changed };
  return { inputs, costs, demand: demandOf(inputs, costs) };
}

/** Ten topics that everybody likes equally, two for each of 1,000 users; ten messages a second; nobody comes or goes. */
export const small = {
  users: 1000,
  topics: 10,
  topicsPerUser: 2,
  zipf: 0,
  publishZipf: 0,
  messagesPerS: 10,
  bytes: 100,
  topicBytes: 10,
  pushesPerDay: 0,
  sessionMinutes: 100_000,
  connectRate: 5000,
  averageShare: 1,
};
