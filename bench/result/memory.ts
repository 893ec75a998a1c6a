import { readFileSync } from 'node:fs';

/** Where the memory of this machine is, in bytes. */
export interface MachineMemory {
  /** What processes may still get before the system runs out. */
  readonly available: number;
  /** Objects of the kernel that it cannot give back. */
  readonly kernel: number;
  /** Sockets of all kinds. */
  readonly sockets: number;
}

/**
 * The inode and the directory entry of a socket. The kernel keeps them with objects that it can give back, and counts them as available, which they
 * are not while the socket is open. Source: `sock_inode_cache` (832 B, 39 in eight pages) and `dentry` (192 B, 21 in a page) of `/proc/slabinfo`, Linux 6.18.
 */
const hiddenBytesOfSocket = (8 * 4096) / 39 + 4096 / 21;

/** Source: proc(5), `/proc/meminfo` and `/proc/net/sockstat`, which may be given for tests. */
export function machineMemory(
  meminfo: string = readFileSync('/proc/meminfo', 'latin1'),
  sockstat: string = readFileSync('/proc/net/sockstat', 'latin1'),
): MachineMemory {
  const bytesOf = (name: string): number =>
    numberIn(meminfo, new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm')) * 1024;
  const sockets = numberIn(sockstat, /^sockets: used (\d+)$/m);
  const hidden = sockets * hiddenBytesOfSocket;
  return {
    available: bytesOf('MemAvailable') - hidden,
    kernel: bytesOf('SUnreclaim') + bytesOf('PageTables') + bytesOf('KernelStack') + hidden,
    sockets,
  };
}

/** Memory of a process that is its own, in bytes: what would be free without it. Source: `RssAnon` of proc(5) `/proc/<pid>/status`. */
export function ownBytesOf(pid: number): number {
  return numberIn(readFileSync(`/proc/${pid}/status`, 'latin1'), /^RssAnon:\s+(\d+) kB$/m) * 1024;
}

function numberIn(text: string, pattern: RegExp): number {
  const match = pattern.exec(text);
  if (match === null) throw new Error(`not what proc(5) describes: no ${pattern.source}`);
  return Number(match[1]);
}
