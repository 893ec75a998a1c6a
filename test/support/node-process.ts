import { createServer } from 'node:net';
import { runCli, type Child } from './child.js';

/** A node that runs as its own process, on a port of its own. */
export interface NodeProcess {
  /** `http://HOST:PORT` */
  readonly url: string;
  readonly port: number;
  readonly nodeId: string;
  readonly engine: string;
  readonly pid: number;
  /** Everything written so far. */
  readonly stdout: string;
  readonly stderr: string;
  /** Settles when the process has ended, by whatever cause: its exit code, null if a signal ended it. */
  readonly exited: Promise<number | null>;
  /** Waits for a line of output; see `Child.waitFor`. */
  waitFor: Child['waitFor'];
  /** Asks it to stop (SIGTERM unless told) and waits for its end; the exit code, null if a signal ended it. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
  /** Ends it without a chance to clean up (SIGKILL), as a crash does. */
  kill(): Promise<void>;
}

const listening = /^listening (http:\/\/\S+:(\d+)) node=(\S+) engine=(\S+)$/m;

/**
 * Starts `topicast serve` and waits until it listens. The port is any free one unless `env` says otherwise.
 * Rejects with what it wrote when it ends first. Nothing is left running when the test file ends.
 */
export async function startNode(
  env: Readonly<Record<string, string>> = {},
  flags: readonly string[] = [],
): Promise<NodeProcess> {
  const child = runCli(['serve', ...flags], { TOPICAST_PORT: '0', ...env });
  const match = await child.waitFor('stdout', listening).catch(async (cause: unknown) => {
    child.signal('SIGKILL');
    await child.exited;
    throw new Error(`the node did not start:\n${child.stderr}${child.stdout}`, { cause });
  });
  const [, url = '', port = '', nodeId = '', engine = ''] = match;
  return {
    url,
    port: Number(port),
    nodeId,
    engine,
    pid: child.pid ?? 0,
    get stdout() {
      return child.stdout;
    },
    get stderr() {
      return child.stderr;
    },
    exited: child.exited,
    waitFor: child.waitFor,
    stop: (signal = 'SIGTERM') => {
      child.signal(signal);
      return child.exited;
    },
    kill: async () => {
      child.signal('SIGKILL');
      await child.exited;
    },
  };
}

/**
 * A port that is free now, for a node that is to come back on the same one (`TOPICAST_PORT`). A node that chose its port itself
 * cannot: µWebSockets sets SO_REUSEADDR for named ports only, so what a crash leaves in TIME_WAIT keeps that port for a minute.
 */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port was assigned');
  return address.port;
}
