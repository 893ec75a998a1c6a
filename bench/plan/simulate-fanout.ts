import { build } from 'hdr-histogram-js';
import { seededRandom } from '../scenarios/zipf.js';
import { nodeLoad, type PlanModel } from './nodes.js';
import { positivePoisson, runQueue } from './queue.js';
import { hosting, type TopicGroup } from './spread.js';

export interface FanoutSimulation {
  /** From the arrival of a message at the node to its write to a socket, over all deliveries. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  readonly meanMs: number;
  /** Share of a core, everything else that the node does included. */
  readonly cpuShare: number;
  /** Messages that were let go at once, on average. */
  readonly messagesPerFlush: number;
  readonly messages: number;
  /** Share of the deliveries, and in how many ms at most. */
  readonly curve: readonly (readonly [share: number, ms: number])[];
}

export interface FanoutSimulationOptions {
  readonly seed: number;
  readonly windowMs: number;
  readonly messages?: number;
}

const messagesDefault = 200_000;
/** Each node is an equal share of a launch, so one stands for all. A part of the run is left out at its start, when the queue is empty. */
const warmUpShare = 0.1;
/** A node with more to do than it can is told of by its CPU; its queue is only kept from growing without end. */
const backgroundMax = 0.99;

/** One of `nodes` equal nodes: messages come as a Poisson process on topics by popularity, wait for the node, and are written socket by socket. */
export function simulateFanout(
  model: PlanModel,
  nodes: number,
  { messages = messagesDefault, seed, windowMs }: FanoutSimulationOptions,
): FanoutSimulation {
  const { costs, demand } = model;
  const load = nodeLoad(model, nodes);
  const random = seededRandom(seed);
  const background = Math.min(backgroundMax, load.cpuShare - load.cpu.deliveries - load.cpu.messages);
  if (load.messages <= 0) return quiet(background);
  const latencies = build({
    lowestDiscernibleValue: 1,
    highestTrackableValue: 3.6e9,
    numberOfSignificantValueDigits: 3,
    bitBucketSize: 64,
  });
  let [flushes, served, summed, deliveries] = [0, 0, 0, 0];
  const busy = runQueue({
    perSec: load.messages,
    jobs: messages,
    windowSec: windowMs / 1000,
    batchMax: Infinity,
    random,
    draw: subscribersOf(demand.groups, load.sessions, random),
    serviceSec(sizes) {
      flushes++;
      const all = sizes.reduce((sum, size) => sum + size, 0);
      const us =
        costs.messageWakeUs +
        sizes.length * costs.messageUs +
        all * costs.deliveryMessageUs +
        socketsOf(sizes, load.sessions) * costs.deliveryWriteUs;
      // What else the node does takes its turns in between.
      return us / 1e6 / (1 - background);
    },
    served(size, waitSec, serviceSec) {
      if (++served < messages * warmUpShare) return;
      // One of its deliveries, anywhere in the batch, stands for all.
      const us = (waitSec + random() * serviceSec) * 1e6;
      latencies.recordValueWithCount(Math.max(1, Math.min(3.5e9, Math.round(us))), size);
      summed += us * size;
      deliveries += size;
    },
  });
  const ms = (share: number): number => latencies.getValueAtPercentile(share * 100) / 1000;
  return {
    p50Ms: ms(0.5),
    p99Ms: ms(0.99),
    p999Ms: ms(0.999),
    meanMs: summed / deliveries / 1000,
    cpuShare: Math.min(1, busy * (1 - background) + background),
    messagesPerFlush: served / flushes,
    messages: served,
    curve: curveShares.map((share) => [share, ms(share)] as const),
  };
}

const curveShares = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9999];

function quiet(cpuShare: number): FanoutSimulation {
  return { p50Ms: 0, p99Ms: 0, p999Ms: 0, meanMs: 0, cpuShare, messagesPerFlush: 0, messages: 0, curve: [] };
}

/** Sockets that are written to when messages with so many subscribers leave together, each at random among the sessions. */
export function socketsOf(sizes: readonly number[], sessions: number): number {
  if (sizes.length === 1) return sizes[0] ?? 0;
  let untouched = 1;
  for (const size of sizes) untouched *= Math.max(0, 1 - size / sessions);
  return sessions * (1 - untouched);
}

/** Draws the subscribers, on one node, of the topic of the next message that the node gets. */
function subscribersOf(groups: readonly TopicGroup[], sessions: number, random: () => number): () => number {
  const ends = new Float64Array(groups.length);
  let total = 0;
  for (const [i, group] of groups.entries()) {
    total += group.count * group.publishShare * hosting(group, sessions);
    ends[i] = total;
  }
  return () => {
    const at = random() * total;
    let [low, high] = [0, groups.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((ends[middle] ?? 0) > at) high = middle;
      else low = middle + 1;
    }
    const inclusion = groups[low]?.inclusion ?? 0;
    // Nobody has more subscribers than it has sessions, but for a node that stands for less than one.
    return Math.min(positivePoisson(inclusion * sessions, random), Math.max(1, Math.round(sessions)));
  };
}
