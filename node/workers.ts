import { fork, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Node } from './compose.js';
import type { Config } from './config.js';
import { listen } from './listen.js';
import type { Logger } from './log.js';
import { loadUws } from './uws.js';
import type { FromWorker, ToWorker } from './worker-messages.js';

export interface WorkersOptions {
  /** The program of a worker; for tests. */
  readonly entry?: string;
  /** How long after its end a worker is started again; doubles with each end in a row. */
  readonly restartMs?: number;
  /** A worker that lived this long is not one of a row. */
  readonly steadyMs?: number;
}

const nodeNameCharsMax = 64;
const restartMsDefault = 500;
const restartMsMax = 30_000;
const steadyMsDefault = 60_000;
/** How much longer than the drain takes workers may need for the rest. */
const stopMsExtra = 10_000;

/**
 * Runs as many nodes as the settings say, each a process of its own, that listen on one port: the kernel spreads the connections over them. One that
 * ends is started again. Workers are named `<name>-w1` and so on, and `metricsPort`, if there is one, counts up with them.
 * @returns when all listen; named after the first
 * @throws ListenError when the port cannot be had; Error with what the first worker said that could not start
 */
export async function startWorkers(config: Config, log: Logger, options: WorkersOptions = {}): Promise<Node> {
  const port = await claimPort(config);
  const workers = Array.from(
    { length: config.workers },
    (_, i) => new Worker(workerConfig({ ...config, port }, i + 1), i + 1, log, options),
  );
  const stop = async (): Promise<void> => {
    await Promise.all(workers.map((worker) => worker.stop()));
  };
  try {
    const [first] = await Promise.all(workers.map((worker) => worker.start()));
    if (first === undefined) throw new Error('no workers are asked for');
    return { id: first.nodeId, url: first.url, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * Workers listen on a port together, which they would with a stranger who does so too. So somebody has to have had it alone first.
 * @returns the port, also when any was asked for
 */
async function claimPort({ host, limits, port }: Config): Promise<number> {
  const uws = loadUws(limits.headerBytesMax);
  const app = uws.App();
  const listening = await listen(uws, app, host, port);
  app.close();
  // The sockets of µWS are closed at the end of a turn.
  await new Promise((resolve) => setImmediate(resolve));
  return listening.port;
}

/** Names stay within what a node name may be. */
export function workerConfig(config: Config, number: number): Config {
  const suffix = `-w${number}`;
  return {
    ...config,
    nodeName: config.nodeName.slice(0, nodeNameCharsMax - suffix.length) + suffix,
    ...(config.metricsPort !== undefined && {
      metricsPort: config.metricsPort === 0 ? 0 : config.metricsPort + number - 1,
    }),
  };
}

type Listening = FromWorker & { type: 'listening' };

/** One worker: the process that runs now, and the next one when it ends. */
class Worker {
  readonly #config: Config;
  readonly #number: number;
  readonly #log: Logger;
  readonly #options: WorkersOptions;
  #child: ChildProcess | undefined;
  #ended: Promise<void> = Promise.resolve();
  #restart: NodeJS.Timeout | undefined;
  #endsInARow = 0;
  #stopping = false;

  constructor(config: Config, number: number, log: Logger, options: WorkersOptions) {
    this.#config = config;
    this.#number = number;
    this.#log = log;
    this.#options = options;
  }

  /** Starts it for the first time; from then on it is kept running. Rejects when it ends before it listens. */
  async start(): Promise<Listening> {
    const listening = await this.#run();
    this.#keep(Date.now());
    return listening;
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#restart);
    const child = this.#child;
    if (child === undefined) return;
    if (child.connected) child.send({ type: 'stop' } satisfies ToWorker, () => undefined);
    else child.kill('SIGTERM');
    const insist = setTimeout(() => child.kill('SIGKILL'), this.#config.drainSec * 1000 + stopMsExtra);
    await this.#ended;
    clearTimeout(insist);
  }

  #run(): Promise<Listening> {
    const entry = this.#options.entry ?? fileURLToPath(new URL('worker.js', import.meta.url));
    const child = fork(entry, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    this.#child = child;
    const { promise, reject, resolve } = deferred<Listening>();
    let reason: string | undefined;
    this.#ended = new Promise((done) => {
      const end = (how: string): void => {
        if (this.#child === child) this.#child = undefined;
        reject(new Error(`worker ${this.#number} ${reason ?? how}`));
        done();
      };
      child.once('error', (error) => end(`could not be started: ${error.message}`));
      child.once('exit', (code, signal) => end(`ended with ${signal ?? `exit code ${code}`}`));
    });
    child.on('message', (message: FromWorker) => {
      if (message.type === 'listening') resolve(message);
      else reason = `could not start: ${message.message}`;
    });
    // A process that has ended already says so by its end.
    child.send(
      { type: 'start', config: this.#config, number: this.#number } satisfies ToWorker,
      () => undefined,
    );
    return promise;
  }

  /** Waits for the end of what runs, and then starts it again after a while that grows with ends in a row. */
  #keep(startedAt: number): void {
    void this.#ended.then(() => {
      if (this.#stopping) return;
      const { restartMs = restartMsDefault, steadyMs = steadyMsDefault } = this.#options;
      this.#endsInARow = Date.now() - startedAt >= steadyMs ? 1 : this.#endsInARow + 1;
      const waitMs = Math.min(restartMsMax, restartMs * 2 ** (this.#endsInARow - 1));
      this.#log.error({ worker: this.#number, waitMs }, 'a worker has ended and will be started again');
      this.#restart = setTimeout(() => this.#again(), waitMs);
    });
  }

  #again(): void {
    const startedAt = Date.now();
    this.#run().then(
      ({ nodeId }) => this.#log.info({ worker: this.#number, node: nodeId }, 'a worker was started again'),
      (error: unknown) => this.#log.error({ err: error }, 'a worker could not be started again'),
    );
    this.#keep(startedAt);
  }
}

interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
}

function deferred<T>(): Deferred<T> {
  let resolve: Deferred<T>['resolve'] = () => undefined;
  let reject: Deferred<T>['reject'] = () => undefined;
  const promise = new Promise<T>((onValue, onError) => {
    resolve = onValue;
    reject = onError;
  });
  return { promise, resolve, reject };
}
