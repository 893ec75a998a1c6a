import { nodeLoad, type PlanModel } from './nodes.js';
import { hostedTopics } from './spread.js';

export interface StormPlan {
  /** Sessions that come back at once, and the nodes that take them. */
  readonly sessions: number;
  readonly survivors: number;
  /** Connections a second that the nodes could let in beside what else they do. */
  readonly capacityPerSec: number;
  /** What holds: the admission rate or that. */
  readonly perSec: number;
  readonly seconds: number;
  /** Durable topics of a surviving node that it did not host before, and their reads of the stream. */
  readonly newTopics: number;
  /** In all, at most: two for each durable topic and node. */
  readonly resumeReadsMax: number;
  /** Of a node, for its new topics. */
  readonly readSeconds: number;
}

const readsAtOnce = 4;
const readsPerTopic = 2;

/** The nodes that held them are gone, and those that are left have the whole load. When everybody is cut, the network was it, and no node is gone. */
export function planStorm(model: PlanModel, nodes: number): StormPlan {
  const { costs, demand, inputs } = model;
  const sessions = demand.sessions * inputs.stormShare;
  const survivors =
    inputs.stormShare === 1 ? nodes : Math.max(1, Math.floor(nodes * (1 - inputs.stormShare)));
  const busy = nodeLoad(model, survivors, 0).cpuShare;
  const capacityPerSec = (Math.max(0, 1 - busy) * 1e6 * survivors) / costs.handshakeUs;
  const perSec = Math.min(demand.connectRate, capacityPerSec);
  const after = hostedTopics(demand.groups, demand.sessions / survivors);
  const before = hostedTopics(demand.groups, demand.sessions / nodes);
  const newTopics = inputs.durableShare * (after - before);
  return {
    sessions,
    survivors,
    capacityPerSec,
    perSec,
    // A node that nobody has come to for a while holds one second's worth.
    seconds: Math.max(0, sessions / perSec - 1),
    newTopics,
    resumeReadsMax: readsPerTopic * inputs.durableShare * after * survivors,
    readSeconds: (newTopics * readsPerTopic * costs.coldReadMs) / readsAtOnce / 1000,
  };
}
