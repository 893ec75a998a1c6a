import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { builtFile } from '../built.js';
import { endWithThisProcess } from '../child-process.js';
import type { HerdCommand, HerdLine, HerdSettings, HerdState } from './commands.js';

type WithoutId<T> = T extends { readonly id: number } ? Omit<T, 'id'> : never;
export type HerdRequest = WithoutId<HerdCommand>;

/** A process of client sockets, seen from its parent. */
export interface HerdProcess {
  readonly pid: number;
  readonly settings: HerdSettings;
  /** @throws Error when the process has failed or ends before it has answered */
  ask(request: HerdRequest): Promise<HerdState>;
  /** Rejects when the process fails or ends by itself; never resolves. */
  readonly died: Promise<never>;
  /** Ends it, and its sockets with it. */
  stop(): Promise<void>;
}

/** What runs the sockets: a program that speaks `commands.ts`, and its arguments. */
export interface HerdProgram {
  readonly command: string;
  readonly args: readonly string[];
}

const shipped: HerdProgram = {
  command: process.execPath,
  args: ['--max-semi-space-size=4', builtFile('bench/fleet/herd-main.js')],
};

const stopMsMax = 5_000;

/** Starts it and waits until it takes commands; no socket is open then. @throws Error when it cannot be started */
export async function startHerd(
  settings: HerdSettings,
  program: HerdProgram = shipped,
): Promise<HerdProcess> {
  const child = spawn(program.command, program.args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const waiting = new Map<number, (state: HerdState) => void>();
  const { promise: died, reject: fail } = rejectable();
  const started = new Promise<void>((resolve) => {
    readLines(child, (line) => {
      if ('is' in line) {
        if (line.is === 'started') resolve();
        else fail(new Error(`a process of client sockets failed: ${line.reason}`));
        return;
      }
      waiting.get(line.id)?.(line.state);
      waiting.delete(line.id);
    });
  });
  endWithThisProcess(child);
  const ended = new Promise<void>((resolve) => {
    child.once('error', (error) => fail(error));
    child.once('close', (code, signal) => {
      fail(new Error(`a process of client sockets ended with ${signal ?? `exit code ${code}`}`));
      resolve();
    });
  });
  // A process that ends while it is written to is told of by `close`.
  child.stdin.on('error', () => undefined);
  const write = (command: HerdCommand) => child.stdin.write(`${JSON.stringify(command)}\n`);

  write({ do: 'start', settings });
  await Promise.race([started, died]);
  let lastId = 0;
  return {
    pid: child.pid ?? 0,
    settings,
    died,
    ask: (request) => {
      const id = ++lastId;
      const answer = new Promise<HerdState>((resolve) => waiting.set(id, resolve));
      write({ ...request, id });
      return Promise.race([answer, died]);
    },
    async stop() {
      child.stdin.end();
      const timer = setTimeout(() => child.kill('SIGKILL'), stopMsMax);
      await ended;
      clearTimeout(timer);
    },
  };
}

function readLines(
  child: ChildProcessByStdio<Writable, Readable, null>,
  onLine: (line: HerdLine) => void,
): void {
  createInterface({ input: child.stdout }).on('line', (line) => onLine(JSON.parse(line) as HerdLine));
}

function rejectable(): { promise: Promise<never>; reject: (error: Error) => void } {
  let reject: (error: Error) => void = () => undefined;
  const promise = new Promise<never>((_, no) => (reject = no));
  // Who waits for it is told; after a stop nobody does, and its end is no news.
  promise.catch(() => undefined);
  return { promise, reject };
}
