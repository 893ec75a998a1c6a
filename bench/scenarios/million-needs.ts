import { readFileSync } from 'node:fs';
import { descriptorsMax } from '../fleet/usage.js';
import { machineMemory } from '../result/memory.js';

/** What a run takes of this machine. */
export interface Wanted {
  readonly sockets: number;
  readonly perNode: number;
  readonly redis: 'cluster' | 'one';
}

export interface Limits {
  /** Bytes that processes may still get. */
  readonly availableBytes: number;
  /** Descriptors of one process. */
  readonly descriptors: number;
  /** Ports of one source address to one target. */
  readonly ports: number;
}

/** Measured with `topicast bench million`; see docs/benchmarks.md. Bytes. */
export const costs = {
  /** Both ends of a connection in the kernel: sockets, files, inodes, epoll items. */
  kernelPerSocket: 8_600,
  /** A session with two topics in its node, and the garbage that V8 has not collected yet. */
  nodePerSocket: 3_000,
  clientPerSocket: 60,
  /** A user who is online, at its master; a replica holds it again. */
  redisPerSocket: 400,
  /** A node and a process of sockets that hold nothing. */
  perNode: 60e6,
  perHerd: 2e6,
  /** NATS, Redis and the bench itself. */
  servers: 300e6,
  /** What is left alone: below it the run is ended. */
  reserve: 1e9,
};

/** Of a node and a process of sockets, beyond the sockets: files, and connections to NATS and Redis. */
const descriptorsBeside = 300;

export function nodesFor({ perNode, sockets }: Pick<Wanted, 'sockets' | 'perNode'>): number {
  return Math.ceil(sockets / perNode);
}

export function bytesFor(wanted: Wanted): number {
  const { redis, sockets } = wanted;
  const copies = redis === 'cluster' ? 2 : 1;
  const perSocket =
    costs.kernelPerSocket + costs.nodePerSocket + costs.clientPerSocket + costs.redisPerSocket * copies;
  return (
    sockets * perSocket + nodesFor(wanted) * (costs.perNode + costs.perHerd) + costs.servers + costs.reserve
  );
}

/** Why this machine cannot do it, and how much of it it could; undefined when it can. */
export function shortfall(wanted: Wanted, limits: Limits): string | undefined {
  const { perNode } = wanted;
  const holds = limits.descriptors - descriptorsBeside;
  if (perNode > holds) {
    return `a process may hold ${limits.descriptors} descriptors: --per-node ${holds} at most`;
  }
  // A process of sockets has two source addresses, and all its sockets go to one node.
  const ports = limits.ports * 2;
  if (perNode > ports) {
    return `an address has ${limits.ports} ports for outgoing connections: --per-node ${ports} at most`;
  }
  const needed = bytesFor(wanted);
  if (needed <= limits.availableBytes) return undefined;
  return `needs ${gb(needed)} GB, ${gb(limits.availableBytes)} are available: --sockets ${fitting(wanted, limits)}`;
}

/** How many would fit, in thousands. */
function fitting(wanted: Wanted, { availableBytes }: Limits): number {
  let low = 0;
  for (let high = wanted.sockets; high - low >= 1000;) {
    const middle = Math.floor((low + high) / 2);
    if (bytesFor({ ...wanted, sockets: middle }) <= availableBytes) low = middle;
    else high = middle;
  }
  return Math.floor(low / 1000) * 1000;
}

function gb(bytes: number): string {
  return (bytes / 1e9).toFixed(1);
}

/** Of this machine, now. */
export function limitsHere(): Limits {
  const [first = 0, last = 0] = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'latin1')
    .trim()
    .split(/\s+/)
    .map(Number);
  return {
    availableBytes: machineMemory().available,
    descriptors: descriptorsMax(),
    ports: last - first + 1,
  };
}
