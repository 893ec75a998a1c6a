import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

let ticksPerSec: number | undefined;

/**
 * CPU seconds that a process has used so far, user and system, all threads. Source: `utime` and `stime` of proc(5) `/proc/<pid>/stat`, in clock ticks.
 */
export function cpuSecondsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  // The name of the program comes second, in parentheses, and may hold spaces.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  ticksPerSec ??= Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSec;
}

/** Files and sockets that this process, and those that it starts, may hold. Node.js raises the soft limit to the hard one when it starts. */
export function descriptorsMax(): number {
  const match = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'));
  return match === null ? Infinity : Number(match[1]);
}

/** Memory of a process that is in RAM, in bytes: `VmRSS` of proc(5) `/proc/<pid>/status`. */
export function rssBytesOf(pid: number): number {
  const match = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'));
  if (match === null) throw new Error(`process ${pid} has no memory`);
  return Number(match[1]) * 1024;
}
