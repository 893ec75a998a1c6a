import { valuesOf, type CostName, type KnownCosts } from './costs.js';
import { demandOf, type Demand } from './demand.js';
import type { PlanInputs } from './inputs.js';
import { planNats, type NatsPlan } from './nats.js';
import { nodeLoad, sizeNodes, type NodeLoad, type NodeSizing, type PlanModel } from './nodes.js';
import { planRedis, type RedisPlan } from './redis.js';
import { planStorm, type StormPlan } from './storm.js';

export interface Plan {
  readonly model: PlanModel;
  readonly demand: Demand;
  readonly sizing: NodeSizing;
  readonly machines: number;
  readonly load: NodeLoad;
  /** The same when as many nodes are away as may be, while connections come in at the full rate. */
  readonly loadAfterLoss: NodeLoad;
  /** Seconds of a node's core that one message to everybody takes. */
  readonly broadcastSeconds: number;
  readonly redis: RedisPlan;
  readonly nats: NatsPlan;
  readonly storm: StormPlan;
  /** What an operator has to know before believing the rest. */
  readonly warnings: readonly string[];
}

/** @throws PlanImpossible when no number of servers is enough */
export function makePlan(inputs: PlanInputs, known: KnownCosts): Plan {
  const costs = valuesOf(known);
  const demand = demandOf(inputs, costs);
  const model: PlanModel = { inputs, costs, demand };
  const sizing = sizeNodes(model);
  const { nodes } = sizing;
  const load = nodeLoad(model, nodes);
  const plan = {
    model,
    demand,
    sizing,
    machines: machinesOf(model, nodes, load),
    load,
    loadAfterLoss: nodeLoad(model, nodes - inputs.lostNodes, demand.stormConnects),
    broadcastSeconds: (load.sessions * (costs.deliveryWriteUs + costs.deliveryMessageUs)) / 1e6,
    redis: planRedis(model),
    nats: planNats(model, nodes, load),
    storm: planStorm(model, nodes),
  };
  return { ...plan, warnings: warningsOf(plan, known) };
}

/** One core a node, and half of the network at most. */
function machinesOf({ inputs }: PlanModel, nodes: number, { outBytes }: NodeLoad): number {
  const byNetwork = (nodes * outBytes * 8) / (inputs.networkGbit * 1e9 * networkTarget);
  return Math.max(Math.ceil(nodes / inputs.coresPerMachine), Math.ceil(byNetwork));
}

const networkTarget = 0.5;
const broadcastSecMax = 1;
const natsMemoryMax = 16e9;
const beaconShareMax = 0.05;

/** Enough for those who come back within seconds; others read the stream. */
const fewRingMessages = 16;

function nodesWithFewRingMessages(model: PlanModel): number {
  const ringMessages = Math.min(fewRingMessages, model.inputs.ringMessages);
  return sizeNodes({ ...model, inputs: { ...model.inputs, ringMessages } }).nodes;
}

function warningsOf(plan: Omit<Plan, 'warnings'>, known: KnownCosts): string[] {
  const { demand, load, model, nats, sizing, storm } = plan;
  const { costs } = model;
  const assumed = (Object.keys(known) as CostName[]).filter((name) => known[name].basis === 'assumed');
  const isRings = sizing.bound === 'memory' && load.ringBytes > load.memoryBytes / 2;
  const withFewRings = isRings ? nodesWithFewRingMessages(model) : sizing.nodes;
  const found: (readonly [boolean, string])[] = [
    [
      assumed.length > 0,
      `${assumed.length} costs are assumed, not measured (${assumed.join(', ')}): measure them with \`topicast bench\` and give the results with --from`,
    ],
    [
      nats.perStream > costs.natsStreamPerSec,
      `a stream gets ${Math.round(nats.perStream)} messages/s and takes about ${costs.natsStreamPerSec}: spread the topics over more namespaces`,
    ],
    [
      storm.capacityPerSec < demand.stormConnects,
      `the nodes can let in ${Math.floor(storm.capacityPerSec)}/s after the loss, less than the admission rate of ${Math.round(demand.connectRate)}: lower it or add nodes`,
    ],
    [
      demand.connects > demand.connectRate,
      `${Math.ceil(demand.connects)} connections come in a second on a quiet day, more than the admission rate of ${Math.round(demand.connectRate)}`,
    ],
    [
      plan.broadcastSeconds > broadcastSecMax,
      `one message to everybody keeps each node busy for ${plan.broadcastSeconds.toFixed(1)} s`,
    ],
    [
      load.cpu.beacons > beaconShareMax,
      `${sizing.nodes} nodes that tell each other every two seconds that they live take ${(load.cpu.beacons * 100).toFixed(0)} % of each core and ` +
        `${Math.round(sizing.nodes ** 2 / 2)} messages/s of NATS: consider several clusters`,
    ],
    [
      isRings,
      `rings take most of the memory of a node, and memory decides how many nodes there are: with TOPICAST_RING_MESSAGES=${fewRingMessages} it would ` +
        `be ${withFewRings} nodes`,
    ],
    [nats.memoryBytes > natsMemoryMax, 'a NATS server needs more than 16 GB: consider several clusters'],
  ];
  return found.filter(([holds]) => holds).map(([, text]) => text);
}
