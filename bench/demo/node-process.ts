import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { endWithThisProcess } from '../child-process.js';

export interface RunningNode {
  readonly url: string;
  readonly id: string;
  readonly engine: string;
  readonly pid: number;
  /** Rejects, with the end of its standard error, when the process ends; never resolves. */
  readonly died: Promise<never>;
  /** Asks it to stop and waits until it has; insists after ten seconds. */
  stop(): Promise<void>;
}

const listening = /^listening (http:\/\/\S+) node=(\S+) engine=(\S+)$/;
const startMsMax = 30_000;
const stopMsMax = 10_000;
/** What is kept of the node's standard error, for the case that it dies. */
const stderrCharsMax = 8_192;

/**
 * Starts `node <entry> serve` with these variables on top of the environment, and waits until it listens.
 * @param nodeFlags flags of Node.js itself, such as `--cpu-prof`
 * @throws Error with the end of its standard error when it ends first, or does not listen within 30 s
 */
export async function startNode(
  entry: string,
  variables: Record<string, string>,
  nodeFlags: readonly string[] = [],
): Promise<RunningNode> {
  const child = spawn(process.execPath, [...nodeFlags, entry, 'serve'], {
    env: { ...process.env, ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-stderrCharsMax);
  });
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(`could not be started: ${error.message}`));
    child.once('close', (code, signal) => resolve(`ended with ${signal ?? `exit code ${code}`}`));
  });
  endWithThisProcess(child);
  const died = ended.then((how): never => {
    throw new Error(`the node ${how}${stderr === '' ? '' : `; it wrote:\n${stderr.trimEnd()}`}`);
  });
  // Who waits for it is told; once the node has been stopped nobody does, and its end is no news.
  died.catch(() => undefined);
  const stop = () => stopChild(child, ended);
  try {
    const [url, id, engine] = await Promise.race([listeningLine(child), died]);
    return { url, id, engine, pid: child.pid ?? 0, died, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function listeningLine(child: ChildProcess): Promise<readonly [url: string, id: string, engine: string]> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the node does not listen after 30 s')), startMsMax);
    if (child.stdout === null) throw new Error('standard output of the node is not a pipe');
    child.once('close', () => clearTimeout(timer));
    // Reading goes on for good: a full pipe would stop the node.
    createInterface({ input: child.stdout }).on('line', (line) => {
      const match = listening.exec(line);
      if (match === null) return;
      clearTimeout(timer);
      resolve([match[1] ?? '', match[2] ?? '', match[3] ?? '']);
    });
  });
}

async function stopChild(child: ChildProcess, ended: Promise<string>): Promise<void> {
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), stopMsMax);
  await ended;
  clearTimeout(timer);
}
