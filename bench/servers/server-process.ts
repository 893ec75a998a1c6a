import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A spawned server, in a process group of its own. It does not outlive this process, however that ends. */
export interface ServerProcess {
  readonly pid: number;
  /** The last of what it wrote. */
  output(): string;
  readonly running: boolean;
  /** Settles when it has ended. */
  readonly exited: Promise<void>;
  signal(name: NodeJS.Signals): void;
}

/** Several servers of one kind that belong together, by their number. */
export interface ServerGroup {
  /** Where clients connect, one per server. */
  readonly urls: readonly string[];
  /** Sends a signal, SIGKILL unless told, and waits for the end if the signal brings one. */
  kill(index: number, signal?: NodeJS.Signals): Promise<void>;
  /** Starts a server again on its old ports and files (ending it first if need be); waits until it answers. */
  restart(index: number): Promise<void>;
  /** Settles when all that run have found each other and are fit for work. */
  healthy(): Promise<void>;
  /** Ends all and removes their files. */
  stop(): Promise<void>;
}

const outputCharsMax = 20_000;
const running = new Set<ChildProcess>();
const folders = new Set<string>();

function cleanUp(): void {
  for (const child of running) signalGroup(child, 'SIGKILL');
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}

process.on('exit', cleanUp);
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(name, () => {
    // Whoever listens too ends in an orderly way, those who use the servers first, and `exit` cleans up; if nobody does, end as the signal would have.
    if (process.listenerCount(name) > 0) return;
    cleanUp();
    process.kill(process.pid, name);
  });
}

/** The kernel's own guard: with it, a server dies even when this process is killed without a chance to clean up. */
const guard = ['/usr/bin/setpriv', '/bin/setpriv'].find((path) => existsSync(path));

export function runServer(path: string, args: readonly string[], folder: string): ServerProcess {
  const command = guard === undefined ? [path, ...args] : [guard, '--pdeathsig', 'KILL', path, ...args];
  const child = spawn(command[0]!, command.slice(1), {
    cwd: folder,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream
      .setEncoding('utf8')
      .on('data', (text: string) => (output = (output + text).slice(-outputCharsMax)));
  }
  const exited = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      output += `[${error.message}]`;
      resolve();
    });
    child.once('close', () => resolve());
  }).then(() => void running.delete(child));
  return {
    pid: child.pid ?? 0,
    output: () => output,
    get running() {
      return running.has(child);
    },
    exited,
    signal: (name) => signalGroup(child, name),
  };
}

function signalGroup(child: ChildProcess, name: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, name);
  } catch (error) {
    // It has ended already, which is what most signals want.
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}

/** A folder that is gone when this process is. */
export function temporaryFolder(kind: string): string {
  const folder = mkdtempSync(join(tmpdir(), `topicast-${kind}-`));
  folders.add(folder);
  return folder;
}

export function removeFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  folders.delete(folder);
}

/** Ends it unless it has ended; a stopped (SIGSTOP) one too. */
export async function endServer(server: ServerProcess, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
  if (server.running) server.signal(signal);
  if (signal !== 'SIGSTOP' && signal !== 'SIGCONT') await server.exited;
}

const given = new Set<number>();

/**
 * Free ports of 127.0.0.1, never the same twice. They lie below the range from which the system serves outgoing connections, so that
 * a server which is down for a while finds its port free when it comes back.
 */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    const port = 12_000 + Math.floor(Math.random() * 20_000);
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    ports.push(port);
  }
  return ports;
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}

/**
 * Asks again and again until the answer is true. What asking throws counts as no. Rejects after the deadline, or when one of the servers that
 * have to run has ended, with what they wrote.
 */
export async function untilServers(
  what: string,
  servers: readonly ServerProcess[],
  ask: () => Promise<boolean>,
  deadlineMs = 30_000,
): Promise<void> {
  const end = Date.now() + deadlineMs;
  let last: unknown;
  while (true) {
    const holds = await ask().catch((error: unknown) => {
      last = error;
      return false;
    });
    if (holds) return;
    const ended = servers.some((server) => !server.running);
    if (ended || Date.now() > end) {
      const why = ended ? 'a server ended' : `not within ${deadlineMs} ms`;
      const outputs = servers.map((server) => server.output().slice(-2000)).join('\n---\n');
      throw new Error(`${what}: ${why}\n${outputs}`, { cause: last });
    }
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
