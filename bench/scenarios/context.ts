import { builtFile } from '../built.js';
import { startNode, type RunningNode } from '../demo/node-process.js';
import { startFleet } from '../fleet/fleet.js';
import type { Progress } from './progress.js';
import type { NodeOptions, ScenarioContext } from './scenario.js';
import { startServers } from './servers.js';

/** Shipped defaults, but for a free port on this machine and an end without delay. */
const nodeVariables = {
  TOPICAST_HOST: '127.0.0.1',
  TOPICAST_PORT: '0',
  TOPICAST_LOG_LEVEL: 'error',
  TOPICAST_DRAIN_SEC: '0',
};

/**
 * Runs with a context, and ends what was started in it. Settles only then.
 * @throws what the run throws; the signal's reason as soon as it is aborted; how a node or a process of sockets has ended when it did so by itself
 */
export async function withContext<T>(
  parts: { readonly signal: AbortSignal; readonly progress: Progress },
  run: (context: ScenarioContext) => Promise<T>,
): Promise<T> {
  const { progress, signal } = parts;
  signal.throwIfAborted();
  const undo: (() => Promise<void> | void)[] = [];
  let fail: (error: unknown) => void = () => undefined;
  const failed = new Promise<never>((_, reject) => (fail = reject));
  const onAbort = (): void => fail(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  const context: ScenarioContext = {
    signal,
    progress,
    defer: (step) => void undo.push(step),
    scope: (inner) => withContext(parts, inner),
    startServers: (wanted) => started(startServers(wanted), (servers) => servers.stop()),
    startNode: (options) =>
      started(
        launch(options),
        (node) => node.stop(),
        options?.mayEnd === true ? undefined : (node) => node.died,
      ),
    async startNodes(count, options) {
      const nodes: RunningNode[] = [];
      while (nodes.length < count) nodes.push(await context.startNode(options));
      return nodes;
    },
    startFleet: (options) =>
      started(
        startFleet(options, signal),
        (fleet) => fleet.stop(),
        (fleet) => fleet.died,
      ),
    async openFleet(fleet, ramp) {
      await fleet.open(ramp, (state) => progress.bar('sockets open', state.ready, fleet.sockets));
      progress.done();
    },
  };

  async function started<S>(
    starting: Promise<S>,
    stop: (one: S) => Promise<void>,
    died?: (one: S) => Promise<never>,
  ): Promise<S> {
    // First, because an abort during the start must wait for it too.
    let one: S | undefined;
    const start = starting.then((value) => (one = value));
    undo.push(async () => {
      await start.catch(() => undefined); // Told to whoever asked for it.
      if (one !== undefined) await stop(one);
    });
    const value = await start;
    died?.(value).catch((error: unknown) => fail(error));
    return value;
  }

  try {
    return await Promise.race([run(context), failed]);
  } finally {
    signal.removeEventListener('abort', onAbort);
    failed.catch(() => undefined); // What is ended on purpose is no failure.
    progress.done();
    for (let step = undo.pop(); step !== undefined; step = undo.pop()) await step();
  }
}

function launch({ entry, env = {}, flags = [], servers }: NodeOptions = {}): Promise<RunningNode> {
  const variables = { ...nodeVariables, ...servers?.env, ...env };
  return startNode(entry ?? builtFile('node/main.js'), variables, flags);
}
