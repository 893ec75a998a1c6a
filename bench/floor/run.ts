import { join } from 'node:path';
import { startNode } from '../demo/node-process.js';
import { cpuSecondsOf } from './cpu.js';
import { startFleet, type Fleet } from './fleet-process.js';
import type { FleetSettings } from './fleet.js';
import { openPublisher } from './publisher.js';
import type { Subject } from './subjects.js';

export interface RunSettings {
  readonly sockets: number;
  readonly perSec: number;
  readonly seconds: number;
  readonly warmUpSec: number;
  readonly payloadBytes: number;
  /** Sockets that read at once and take the latency. */
  readonly probes: number;
  readonly napMs: number;
  /** Where the server writes a CPU profile when it ends. */
  readonly profileDir?: string;
}

export interface RunResult {
  readonly subject: Subject['name'];
  readonly deliveries: number;
  readonly expected: number;
  readonly disorder: number;
  readonly refused: readonly string[];
  /** While the messages that count were sent and delivered. */
  readonly seconds: number;
  readonly serverCpuSec: number;
  /** Of the busiest process of sockets, and of the publisher: neither may be near one core. */
  readonly clientCpuShareMax: number;
  readonly clientCpuSec: number;
  readonly cpuUsPerDelivery: number;
  /** Of the probes: near 1 when the server wrote each message on its own and the machine had time for everybody. */
  readonly messagesPerRead: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** Deliveries that do not come any nearer to what is due within this time are lost. */
const stalledMsMax = 5000;

/** Starts the server, its clients and a publisher, measures one run, and ends them all. */
export async function measure(subject: Subject, settings: RunSettings): Promise<RunResult> {
  const { profileDir } = settings;
  const flags =
    profileDir === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${join(profileDir, subject.name)}`];
  const server = await startNode(subject.entry, subject.variables, flags);
  const fleets: Fleet[] = [];
  try {
    // One after the other, so that the probes are the first and the last subscribers in the server's order.
    for (const part of partsOf(settings)) {
      fleets.push(await startFleet({ ...fleetSettings(subject, new URL(server.url), settings), ...part }));
    }
    return await Promise.race([drive(subject, settings, server, fleets), server.died]);
  } finally {
    for (const fleet of fleets) fleet.stop();
    await server.stop();
  }
}

function partsOf({
  napMs,
  probes,
  sockets,
}: RunSettings): Pick<FleetSettings, 'sockets' | 'napMs' | 'probe'>[] {
  const first = Math.ceil(probes / 2);
  return [
    { sockets: first, napMs: 0, probe: true },
    { sockets: sockets - probes, napMs, probe: false },
    { sockets: probes - first, napMs: 0, probe: true },
  ].filter((part) => part.sockets > 0);
}

function fleetSettings(subject: Subject, url: URL, settings: RunSettings) {
  return {
    host: url.hostname,
    port: Number(url.port),
    target: subject.subscribeTarget,
    ...(subject.protocol !== undefined && { protocol: subject.protocol }),
    readyOn: subject.readyOn,
    warmUpMessages: warmUpMessages(settings),
  };
}

function warmUpMessages({ perSec, warmUpSec }: RunSettings): number {
  return Math.round(perSec * warmUpSec);
}

async function drive(
  subject: Subject,
  settings: RunSettings,
  server: { readonly url: string; readonly pid: number },
  fleets: readonly Fleet[],
): Promise<RunResult> {
  const { payloadBytes, perSec, seconds, sockets } = settings;
  const refused: string[] = [];
  const publisher = await openPublisher(
    server.url.replace('http:', 'ws:') + subject.publishTarget,
    subject.protocol,
    payloadBytes,
    subject.wrap,
    (text) => refused.push(text),
  );
  const warmUp = warmUpMessages(settings);
  await publisher.send(0, warmUp, perSec);
  await delivered(fleets, warmUp * sockets);

  const pids = [server.pid, process.pid, ...fleets.map((fleet) => fleet.pid)];
  const before = pids.map(cpuSecondsOf);
  const startedAt = performance.now();
  const counted = Math.round(perSec * seconds);
  await publisher.send(warmUp, counted, perSec);
  const expected = (warmUp + counted) * sockets;
  const deliveries = await delivered(fleets, expected);
  const tookSec = (performance.now() - startedAt) / 1000;
  const [serverCpuSec = 0, ...clientCpuSec] = pids.map((pid, i) => cpuSecondsOf(pid) - (before[i] ?? 0));
  const states = await Promise.all(fleets.map((fleet) => fleet.state()));
  publisher.close();
  const probes = states.filter((_, i) => fleets[i]?.probe === true);
  const latencies = states.flatMap((state) => state.latenciesUs).sort((a, b) => a - b);
  return {
    subject: subject.name,
    deliveries,
    expected,
    disorder: sum(states, 'disorder'),
    refused,
    seconds: tookSec,
    serverCpuSec,
    clientCpuShareMax: Math.max(...clientCpuSec) / tookSec,
    clientCpuSec: clientCpuSec.reduce((sum, sec) => sum + sec, 0),
    cpuUsPerDelivery: (serverCpuSec * 1e6) / (counted * sockets),
    messagesPerRead: sum(probes, 'messages') / sum(probes, 'reads'),
    p50Ms: percentile(latencies, 0.5),
    p99Ms: percentile(latencies, 0.99),
    maxMs: percentile(latencies, 1),
  };
}

/** Waits until so many have arrived, or no more come. @returns how many have */
async function delivered(fleets: readonly Fleet[], expected: number): Promise<number> {
  let count = -1;
  let movedAt = performance.now();
  while (true) {
    const states = await Promise.all(fleets.map((fleet) => fleet.state()));
    const now = sum(states, 'messages');
    if (now > count) movedAt = performance.now();
    count = now;
    if (count >= expected || performance.now() - movedAt > stalledMsMax) return count;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function sum<K extends string>(states: readonly Readonly<Record<K, number>>[], key: K): number {
  return states.reduce((total, state) => total + state[key], 0);
}

/** @param sortedUs ascending @returns ms */
function percentile(sortedUs: readonly number[], share: number): number {
  const index = Math.max(0, Math.ceil(sortedUs.length * share) - 1);
  return (sortedUs[index] ?? NaN) / 1000;
}
