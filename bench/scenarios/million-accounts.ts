import { cpuSecondsOf } from '../fleet/usage.js';
import { machineMemory, ownBytesOf, type MachineMemory } from '../result/memory.js';
import { sum } from './waiting.js';

/** The processes of a run, by what they are. */
export interface Processes {
  readonly nodes: readonly number[];
  readonly redis: readonly number[];
  readonly nats: readonly number[];
  readonly clients: readonly number[];
}

type Kind = keyof Processes;
export type ByKind = Readonly<Record<Kind, number>>;

/** Memory of the machine and of the processes, at one moment. */
export interface MemoryAccount {
  readonly machine: MachineMemory;
  /** What is not shared, in bytes. */
  readonly own: ByKind;
}

function byKind(processes: Processes, of: (pid: number) => number): ByKind {
  const total = (kind: Kind): number => sum(processes[kind].map(of));
  return { nodes: total('nodes'), redis: total('redis'), nats: total('nats'), clients: total('clients') };
}

export function memoryAccount(processes: Processes): MemoryAccount {
  return { machine: machineMemory(), own: byKind(processes, ownBytesOf) };
}

/** CPU seconds so far. */
export function cpuAccount(processes: Processes): ByKind {
  return byKind(processes, cpuSecondsOf);
}

export function cpuSince(processes: Processes, before: ByKind): ByKind {
  const now = cpuAccount(processes);
  return {
    nodes: now.nodes - before.nodes,
    redis: now.redis - before.redis,
    nats: now.nats - before.nats,
    clients: now.clients - before.clients,
  };
}

/** One line for a person. */
export function memoryText({ machine, own }: MemoryAccount): string {
  const parts = [
    `nodes ${mb(own.nodes)}`,
    `clients ${mb(own.clients)}`,
    `Redis ${mb(own.redis)}`,
    `NATS ${mb(own.nats)}`,
    `kernel ${mb(machine.kernel)}`,
  ];
  return `${mb(machine.available)} MB of memory left (in MB: ${parts.join(', ')}), ${machine.sockets.toLocaleString('en-US')} sockets in the kernel`;
}

function mb(bytes: number): string {
  return Math.round(bytes / 1e6).toLocaleString('en-US');
}
