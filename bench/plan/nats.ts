import { beaconSec, onlineShare, type NodeLoad, type PlanModel } from './nodes.js';
import { total } from './spread.js';

export interface NatsPlan {
  readonly servers: number;
  /** Messages a second from publishers and nodes, and to them; acknowledgements and beacons included, copies between servers not. */
  readonly in: number;
  readonly out: number;
  /** A topic message, on average: nodes that get it. */
  readonly nodesPerMessage: number;
  readonly outBytes: number;
  /** Between the servers: copies of the streams, and messages to servers that have a receiver. */
  readonly routeBytes: number;
  /** Of nodes, in all. */
  readonly subscriptions: number;
  readonly cpuCores: number;
  readonly cpuShare: number;
  /** Of each server. */
  readonly memoryBytes: number;
  readonly storedMessages: number;
  /** Of each server. */
  readonly diskBytes: number;
  /** Durable messages a second of each stream. */
  readonly perStream: number;
}

/** Around a topic message on its way to a node: protocol line and the headers of a stored message. */
const headBytes = 160;
const beaconBytes = 250;
/** Of a node beside its topics: commands, beacons, answers, acknowledgements. */
const ownSubscriptions = 6;

/** @param nodes of the cluster @param load of each */
export function planNats(model: PlanModel, nodes: number, load: NodeLoad): NatsPlan {
  const { costs, demand, inputs } = model;
  const durable = demand.messages * inputs.durableShare;
  const nodesPerMessage = demand.messages === 0 ? 0 : (nodes * load.messages) / demand.messages;
  const topicOut = nodes * load.messages;
  // A command and its answer, for each session of the user on another node than the one that was asked.
  const hints = 2 * demand.pushes * onlineShare(inputs) * (1 - 1 / nodes);
  const beaconsIn = nodes / beaconSec;
  const out = topicOut + durable + hints + beaconsIn * nodes;
  const natsIn = demand.messages + hints + beaconsIn;
  const publishUs = inputs.natsReplicas === 1 ? costs.natsPublishUs : costs.natsPublishReplicatedUs;
  const cpuCores = (durable * publishUs + (out + natsIn - durable) * costs.natsMessageUs) / 1e6;
  const servers = Math.max(
    inputs.natsServers,
    inputs.natsReplicas,
    Math.ceil(cpuCores / (inputs.natsCores * inputs.natsCpuTarget)),
  );
  const messageBytes = inputs.bytes + inputs.topicBytes + headBytes;
  const stored = storedMessages(model);
  const subscriptions = nodes * (load.hostedTopics + ownSubscriptions);
  const copies = inputs.natsReplicas / servers;
  // What a server knows of another: each topic once, however many nodes there want it.
  const remote = (servers - 1) * Math.min(inputs.topics, subscriptions / servers);
  return {
    servers,
    in: natsIn,
    out,
    nodesPerMessage,
    outBytes:
      topicOut * messageBytes + hints * (inputs.pushBytes + headBytes) + beaconsIn * nodes * beaconBytes,
    routeBytes:
      (durable * (inputs.natsReplicas - 1) + demand.messages * Math.min(servers - 1, nodesPerMessage)) *
      messageBytes,
    subscriptions,
    cpuCores,
    cpuShare: cpuCores / (servers * inputs.natsCores),
    memoryBytes:
      costs.natsBaseBytes +
      (subscriptions / servers + remote) * costs.natsSubscriptionBytes +
      inputs.topics * inputs.durableShare * copies * costs.natsSubjectBytes,
    storedMessages: stored,
    diskBytes: stored * (inputs.bytes + inputs.topicBytes + costs.natsStoredBytes) * copies,
    perStream: durable / inputs.durableNamespaces,
  };
}

/** Of each topic as many as come within the time, and no more than the bound. */
function storedMessages({ demand, inputs }: PlanModel): number {
  const perSec = inputs.messagesPerS * inputs.averageShare;
  const each = total(demand.groups, ({ publishShare }) =>
    Math.min(inputs.historyMax, perSec * publishShare * inputs.historySec),
  );
  return inputs.durableShare * each;
}
