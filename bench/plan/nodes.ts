import type { Costs } from './costs.js';
import { packetBytes, wakesOf, type Demand } from './demand.js';
import type { PlanInputs } from './inputs.js';
import { hostedShare, hostedTopics, hosting, total } from './spread.js';

export interface PlanModel {
  readonly inputs: PlanInputs;
  readonly costs: Costs;
  readonly demand: Demand;
}

/** No number of nodes can do it. */
export class PlanImpossible extends Error {}

/** What one node of several equal ones does. */
export interface NodeLoad {
  readonly sessions: number;
  readonly hostedTopics: number;
  /** Messages a second of the topics that it hosts. */
  readonly messages: number;
  /** Shares of a core. */
  readonly cpu: CpuParts;
  readonly cpuShare: number;
  readonly memoryBytes: number;
  readonly ringBytes: number;
  /** To clients, a second, on the wire. */
  readonly outBytes: number;
}

export interface CpuParts {
  /** With nobody connected. */
  readonly process: number;
  readonly deliveries: number;
  readonly messages: number;
  readonly publishes: number;
  readonly handshakes: number;
  readonly sessions: number;
  readonly pushes: number;
  readonly beacons: number;
}

/** Every node says once in so many seconds that it lives. */
export const beaconSec = 2;
/** A ring is as full as a day fills it. */
const ringSec = 86_400;
/** Descriptors that are no connections of clients. */
export const ownDescriptors = 100;
const nodesMax = 1_000_000;

/** @param connects a second, in the whole cluster */
export function nodeLoad(
  { costs, demand, inputs }: PlanModel,
  nodes: number,
  connects = demand.connects,
): NodeLoad {
  const sessions = demand.sessions / nodes;
  const messages = demand.messages * hostedShare(demand.groups, sessions);
  const hosted = hostedTopics(demand.groups, sessions);
  const deliveries = demand.deliveries / nodes;
  const pushes = demand.pushes / nodes;
  const beacons = (nodes - 1) / beaconSec;
  const requests = demand.publishRequests / nodes;
  // One turn takes whatever has come, of all kinds.
  const came = messages + beacons + requests;
  const waking = came === 0 ? 0 : wakesOf(came) / came;
  const cpu: CpuParts = {
    process: costs.nodeUsPerSec / 1e6,
    deliveries: (deliveries * demand.deliveryUs) / 1e6,
    messages: (messages * costs.messageUs + (messages + beacons) * waking * costs.messageWakeUs) / 1e6,
    publishes:
      ((demand.published / nodes) * demand.publishUs + requests * waking * costs.publishWakeUs) / 1e6,
    handshakes: ((connects / nodes) * costs.handshakeUs) / 1e6,
    sessions: (sessions * costs.sessionUsPerSec) / 1e6,
    pushes: (pushes * costs.pushUs) / 1e6,
    beacons: (beacons * costs.beaconUs) / 1e6,
  };
  const ringBytes = ringBytesOf({ costs, demand, inputs }, sessions);
  const subscriptions = Math.max(0, inputs.topicsPerUser - 2);
  return {
    sessions,
    hostedTopics: hosted,
    messages,
    cpu,
    cpuShare: Object.values<number>({ ...cpu }).reduce((sum, part) => sum + part, 0),
    memoryBytes:
      costs.nodeBaseBytes +
      sessions * (costs.sessionBytes + subscriptions * costs.subscriptionBytes) +
      hosted * costs.hostedTopicBytes +
      ringBytes,
    ringBytes,
    outBytes:
      deliveries * (demand.frameBytes + packetBytes / demand.batch) +
      pushes * onlineShare(inputs) * (demand.pushFrameBytes + packetBytes) +
      (sessions / inputs.pingSec) * (packetBytes + pongBytes),
  };
}

/** A `pong` with the floors of two namespaces. */
const pongBytes = 80;

export function onlineShare({ offlineShare, sessionsPerUser }: PlanInputs): number {
  return (1 - offlineShare) * sessionsPerUser;
}

function ringBytesOf({ costs, demand, inputs }: PlanModel, sessions: number): number {
  const kept = Math.min(inputs.ringMessages, inputs.historyMax);
  const perSec = inputs.messagesPerS * inputs.averageShare;
  const messages = total(
    demand.groups,
    (group) => hosting(group, sessions) * Math.min(kept, group.publishShare * perSec * ringSec),
  );
  const each = costs.ringMessageBytes + inputs.bytes + demand.frameBytes;
  return inputs.durableShare * messages * each;
}

/** What may make nodes necessary. */
export const nodeBounds = ['CPU', 'CPU after a loss', 'memory', 'descriptors'] as const;
export type NodeBound = (typeof nodeBounds)[number];

export interface NodeSizing {
  readonly nodes: number;
  /** The one that wants the most nodes. */
  readonly bound: NodeBound;
  /** How many nodes each wants. */
  readonly wanted: Readonly<Record<NodeBound, number>>;
}

/**
 * The smallest number of nodes at which each keeps to its share of a core, and at which those that are left after a loss have the memory, the
 * descriptors and the CPU for everybody, also while connections come in at the full rate.
 * @throws PlanImpossible
 */
export function sizeNodes(model: PlanModel): NodeSizing {
  const { demand, inputs } = model;
  const { lostNodes } = inputs;
  const fits: Readonly<Record<NodeBound, (nodes: number) => boolean>> = {
    CPU: (nodes) => nodeLoad(model, nodes).cpuShare <= inputs.cpuTarget,
    'CPU after a loss': (nodes) =>
      nodeLoad(model, nodes - lostNodes, demand.stormConnects).cpuShare <= inputs.lossCpuTarget,
    memory: (nodes) => nodeLoad(model, nodes - lostNodes).memoryBytes <= inputs.nodeMemoryGb * 1e9,
    descriptors: (nodes) => demand.sessions / (nodes - lostNodes) <= inputs.fileDescriptors - ownDescriptors,
  };
  const wanted = {} as Record<NodeBound, number>;
  for (const bound of nodeBounds) wanted[bound] = smallest(lostNodes + 1, fits[bound], bound);
  const nodes = Math.max(...Object.values(wanted));
  const bound = nodeBounds.find((name) => wanted[name] === nodes) ?? 'CPU';
  const broken = nodeBounds.find((name) => !fits[name](nodes));
  if (broken !== undefined) {
    throw impossible(broken, `the ${nodes} nodes that ${bound} asks for are too many`);
  }
  return { nodes, bound, wanted };
}

/** More nodes always help, until what they say to each other is too much. */
function smallest(from: number, fits: (nodes: number) => boolean, bound: NodeBound): number {
  let [low, high] = [from - 1, from];
  while (!fits(high)) {
    if (high >= nodesMax) {
      throw impossible(bound, `${nodesMax.toLocaleString('en-US')} nodes are too few`);
    }
    low = high;
    high = Math.min(nodesMax, high * 2);
  }
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (fits(middle)) high = middle;
    else low = middle;
  }
  return high;
}

function impossible(bound: NodeBound, why: string): PlanImpossible {
  return new PlanImpossible(
    `no number of nodes is enough: for ${bound} ${why}. A node takes every message of the topics that it hosts and hears every other node, however ` +
      'few sessions it has: use fewer messages or several clusters',
  );
}
