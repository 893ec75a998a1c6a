import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll } from 'vitest';

/** The built entry point; end-to-end tests run what users run, so `npm run build` comes first. */
export const mainPath = fileURLToPath(new URL('../../dist/node/main.js', import.meta.url));

const patienceMs = 20_000;
const running = new Set<Child>();

afterAll(endAll);
// A worker that dies before its hooks ran (a crash, an interrupted run) still takes its children along.
process.on('exit', () => {
  for (const child of running) child.signal('SIGKILL');
});

/** A spawned process whose output is kept, and can be waited for instead of slept for. */
export interface Child {
  readonly pid: number | undefined;
  /** Everything written so far. */
  readonly stdout: string;
  readonly stderr: string;
  /** Settles when the process has ended and its output is complete: its exit code, null if a signal ended it. */
  readonly exited: Promise<number | null>;
  /**
   * Waits until what was written from `after` (a length of the output; 0 by default) on matches. Rejects, with the output, when the process
   * ends without it or nothing came for 20 s.
   */
  waitFor(stream: 'stdout' | 'stderr', pattern: RegExp, after?: number): Promise<RegExpExecArray>;
  /** Writes to standard input and closes it. */
  input(text: string): void;
  /** Closes the reading end of standard output, as `| head -1` does. */
  closeStdout(): void;
  signal(name: NodeJS.Signals): void;
}

/**
 * Runs `topicast ARGS…`. `TOPICAST_*` variables of the test run itself are not passed on. Whatever still runs
 * when the test file ends is killed.
 */
export function runCli(args: readonly string[], env: Readonly<Record<string, string>> = {}): Child {
  return runNode([mainPath, ...args], env);
}

/** Runs `node ARGS…`, with the same care. */
export function runNode(args: readonly string[], env: Readonly<Record<string, string>> = {}): Child {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('TOPICAST_'));
  const child = spawn(process.execPath, [...args], {
    env: { ...Object.fromEntries(inherited), ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  const watchers = new Set<() => void>();
  let ended = false;
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      output[stream] += text;
      for (const look of [...watchers]) look();
    });
  }
  // The process may end before it has read its input; how it ended is what the tests look at.
  child.stdin.on('error', (error) => (output.stderr += `[stdin: ${error.message}]`));
  const exited = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  }).finally(() => {
    ended = true;
    running.delete(self);
    for (const look of [...watchers]) look();
  });

  function waitFor(stream: 'stdout' | 'stderr', pattern: RegExp, after = 0): Promise<RegExpExecArray> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => finish(null, 'nothing that matches came'), patienceMs);
      const look = (): void => {
        const match = pattern.exec(output[stream].slice(after));
        if (match !== null) finish(match, '');
        else if (ended) finish(null, 'the process ended first');
      };
      const finish = (match: RegExpExecArray | null, fault: string): void => {
        clearTimeout(timer);
        watchers.delete(look);
        if (match !== null) resolve(match);
        else reject(new Error(`${fault}: ${pattern} on ${stream}\n${output.stdout}\n${output.stderr}`));
      };
      watchers.add(look);
      look();
    });
  }

  const self: Child = {
    pid: child.pid,
    get stdout() {
      return output.stdout;
    },
    get stderr() {
      return output.stderr;
    },
    exited,
    waitFor,
    input: (text) => void child.stdin.end(text),
    closeStdout: () => void child.stdout.destroy(),
    signal: (name) => void child.kill(name),
  };
  running.add(self);
  return self;
}

async function endAll(): Promise<void> {
  const children = [...running];
  for (const child of children) child.signal('SIGKILL');
  await Promise.allSettled(children.map((child) => child.exited));
}
