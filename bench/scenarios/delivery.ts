import type { Fleet, FleetMeasure } from '../fleet/fleet.js';
import type { FleetState } from '../fleet/fleet-state.js';
import type { Publisher } from '../fleet/publisher.js';
import { cpuSecondsOf } from '../fleet/usage.js';
import type { Figures } from '../result/result.js';

/** A client this busy may have been what held things up. */
export const clientShareMax = 0.8;

export interface DeliveryOptions {
  readonly fleet: Fleet;
  readonly publisher: Publisher;
  /** Processes whose CPU is the cost. */
  readonly serverPids: readonly number[];
  readonly perSec: number;
  /** Of the warm-up; `perSec` unless given. */
  readonly warmPerSec?: number;
  readonly warmUpSec: number;
  readonly seconds: number;
  /** `msg` frames that all sockets together must have got when the publisher has sent so many messages since its start. */
  readonly expected: (sent: number) => number;
  readonly signal: AbortSignal;
}

export interface DeliveryRun {
  /** What of the client side was measured. */
  readonly clients: FleetMeasure;
  /** `msg` frames that came while measured, and that had to. */
  readonly deliveries: number;
  readonly due: number;
  readonly seconds: number;
  readonly serverCpuSec: number;
  /** Of a core: the busiest of the processes of sockets and the one that publishes, which is this one. */
  readonly clientShareMax: number;
  readonly refused: readonly string[];
}

/** Publishes at an even pace to sockets that are open, first to warm up, then measured, until everything has arrived or nothing more comes. */
export async function runDelivery(options: DeliveryOptions): Promise<DeliveryRun> {
  const { expected, fleet, perSec, publisher, serverPids, signal } = options;
  const { warmPerSec = perSec } = options;
  await publisher.send(Math.round(warmPerSec * options.warmUpSec), warmPerSec, signal);
  const warm = await fleet.delivered(expected(publisher.sent));

  await fleet.begin();
  const pids = [...serverPids, process.pid];
  const before = pids.map(cpuSecondsOf);
  await publisher.send(Math.round(perSec * options.seconds), perSec, signal);
  const due = expected(publisher.sent) - warm.messages;
  await fleet.delivered(expected(publisher.sent));
  const used = pids.map((pid, i) => cpuSecondsOf(pid) - (before[i] ?? 0));
  const clients = await fleet.measured();
  const ownShare = (used.at(-1) ?? 0) / clients.seconds;
  return {
    clients,
    deliveries: clients.state.messages - warm.messages,
    due,
    seconds: clients.seconds,
    serverCpuSec: used.slice(0, -1).reduce((sum, sec) => sum + sec, 0),
    clientShareMax: Math.max(clients.cpuShareMax, ownShare),
    refused: publisher.refused,
  };
}

/** `ratioToBare`, `sockets` and what else a scenario knows are for it to add. */
export function deliveryFigures(run: DeliveryRun): Figures {
  const { clients, deliveries, seconds, serverCpuSec } = run;
  return {
    deliveries,
    deliveriesPerSec: deliveries / seconds,
    cpuUsPerDelivery: (serverCpuSec * 1e6) / deliveries,
    serverCpuShare: serverCpuSec / seconds,
    clientCpuShare: run.clientShareMax,
    ...(Number.isFinite(clients.messagesPerRead) ? { messagesPerRead: clients.messagesPerRead } : {}),
    ...latencyFigures(clients),
  };
}

function latencyFigures({ latencies }: FleetMeasure): Figures {
  if (latencies.count === 0) return {};
  return { p50Ms: latencies.ms(0.5), p99Ms: latencies.ms(0.99), maxMs: latencies.ms(1) };
}

/** What was not delivered as it had to be, in words. */
export function deliveryFaults(label: string, run: DeliveryRun): string[] {
  const { deliveries, due, refused } = run;
  return [
    ...(deliveries === due ? [] : [`${deliveries} deliveries instead of ${due}`]),
    ...stateFaults(run.clients.state),
    ...(refused.length === 0 ? [] : [`${refused.length} refused, the first: ${refused[0] ?? ''}`]),
  ].map((fault) => `${label}: ${fault}`);
}

/** What was wrong on the sockets since their start, in words. A hole, a repeat or a stray message is always a fault; so is a socket that ended. */
export function stateFaults(state: FleetState): string[] {
  const closed = Object.entries(state.closed).map(([code, count]) => `${count} sockets ended with ${code}`);
  const counted = [
    [state.lost, 'messages missing between others'],
    [state.doubled, 'messages twice'],
    [state.disorder, 'messages out of order'],
    [state.foreign, 'messages that nobody asked for'],
    [state.gaps, 'gaps told by the server'],
    [state.notRecovered, 'positions not recovered'],
    [state.resyncs, 'times a socket fell behind'],
    [state.failed, 'sockets could not be opened'],
  ] as const;
  return [
    ...counted.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`),
    ...closed,
    ...state.faults.slice(0, 1).map((reason) => `first reason: ${reason}`),
  ];
}

/** Why the figures may not be believed; undefined when they may. @param share of a core, of the busiest client process */
export function clientDoubt(label: string, share: number): string | undefined {
  if (share <= clientShareMax) return undefined;
  return `${label}: a client process used ${(share * 100).toFixed(0)} % of a core and may have been the bottleneck`;
}

/**
 * Deliveries of `sent` messages, message i to `topics[i % topics.length]`, to sockets of which socket i subscribes to
 * `groups[i % groups.length]` (topics, no patterns).
 */
export function expectedDeliveries(
  groups: readonly (readonly string[])[],
  sockets: number,
  topics: readonly string[],
): (sent: number) => number {
  const subscribers = new Map<string, number>();
  for (const [i, group] of groups.entries()) {
    const members = Math.floor(sockets / groups.length) + (i < sockets % groups.length ? 1 : 0);
    for (const topic of new Set(group)) subscribers.set(topic, (subscribers.get(topic) ?? 0) + members);
  }
  const each = topics.map((topic) => subscribers.get(topic) ?? 0);
  const round = each.reduce((sum, count) => sum + count, 0);
  return (sent) => {
    const rest = each.slice(0, sent % topics.length).reduce((sum, count) => sum + count, 0);
    return Math.floor(sent / topics.length) * round + rest;
  };
}
