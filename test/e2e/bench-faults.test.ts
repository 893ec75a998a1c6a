import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import type { RunningNode } from '../../bench/demo/node-process.js';
import type { Fleet } from '../../bench/fleet/fleet.js';
import type { FleetState } from '../../bench/fleet/fleet-state.js';
import { parseResult, type BenchResult } from '../../bench/result/result.js';
import { scenarios } from '../../bench/scenarios/index.js';
import { runScenario } from '../../bench/scenarios/run.js';
import type { ScenarioContext } from '../../bench/scenarios/scenario.js';
import { natsServers, redisServer } from '../../bench/servers/binaries.js';
import { runCli } from '../support/child.js';

natsServers();
redisServer();

/** What makes a run go wrong that would have been right. */
interface Sabotage {
  /** What the client sockets count. */
  readonly state?: (state: FleetState) => Partial<FleetState>;
  /** Each node, when it is up. @returns how to stop */
  readonly node?: (node: RunningNode) => Promise<() => void>;
}

const missing: Sabotage = { state: ({ lost }) => ({ lost: lost + 1 }) };
const oneMissing = '1 messages missing between others';
const brief = { seconds: 1, warmUp: 1, rounds: 1 };

/** A fault for each way in which a scenario counts, and what it says then: nothing else may be off. */
const cases: readonly [
  name: string,
  fault: RegExp,
  settings: Readonly<Record<string, unknown>>,
  sabotage: Sabotage,
][] = [
  [
    'fanout',
    new RegExp(`^node-live: ${oneMissing}$`),
    { ...brief, sockets: 20, subjects: ['node-live'] },
    missing,
  ],
  [
    'compare',
    new RegExp(`^(topicast-live|ws): ${oneMissing}$`),
    { ...brief, sockets: 20, rate: 50, settle: 0, peers: ['topicast-live', 'ws'] },
    missing,
  ],
  ['mixed', new RegExp(`^mixed: ${oneMissing}$`), { ...brief, users: 100, topics: 20, settle: 1 }, missing],
  [
    'messages',
    new RegExp(`^50 messages/s: ${oneMissing}$`),
    { rates: [50], topics: 10, seconds: 1, warmUp: 10, quiet: 1 },
    missing,
  ],
  [
    'topics',
    /^1 sockets ended with 1006$/,
    { topics: [10], perSocket: 10, engine: 'embedded', settle: 1 },
    { state: () => ({ closed: { 1006: 1 } }) },
  ],
  [
    'idle',
    // One of the first, and one of those that are counted.
    /^98 of 100 sessions are left$/,
    { sockets: 100, engine: 'embedded', settle: 1, idle: 1 },
    { state: ({ ready }) => ({ ready: ready - 1 }) },
  ],
  [
    'connect',
    new RegExp(`^${oneMissing}$`),
    { sockets: 100, engine: 'embedded', rounds: 2, atOnce: 50 },
    missing,
  ],
  [
    'storm',
    /^99 of 100 sessions are back$/,
    { sockets: 100, engine: 'embedded', pause: 1 },
    { state: ({ ready }) => ({ ready: ready - 1 }) },
  ],
  [
    'resume',
    new RegExp(oneMissing),
    { sockets: 60, nodes: 2, topics: 10, rate: 50, warmUp: 1, patience: 30 },
    missing,
  ],
  [
    'direct',
    /^1 connections: \d+ pushes received instead of \d+$/,
    { ...brief, users: 20, connections: [1] },
    { state: ({ directs }) => ({ directs: directs + 1 }) },
  ],
  [
    'durable-publish',
    /^R1, 1 a request: \d+ offsets between the first and the last were not answered$/,
    { ...brief, replicas: [1], batches: [1], single: 2 },
    { node: publishBeside },
  ],
  [
    'redis-memory',
    /^201 users are online instead of 200$/,
    { users: 100, offline: 100, queued: [], settle: 1 },
    { node: connectBeside },
  ],
  [
    'grow',
    new RegExp(`${oneMissing}$`),
    { ...brief, sizes: [100], deliveries: 1000, engine: 'embedded', settle: 1 },
    missing,
  ],
  [
    'million',
    new RegExp(oneMissing),
    { sockets: 200, perNode: 100, settle: 1, idle: 1, broadcasts: 1, redis: 'one' },
    missing,
  ],
];

it('has a case for each scenario', () => {
  expect(cases.map(([name]) => name).sort()).toEqual(scenarios.map(({ name }) => name).sort());
});

describe('a scenario whose count is off finds fault with it, and with nothing else:', () => {
  it.each(cases)('%s', async (name, fault, settings, sabotage) => {
    const { faults } = await runSabotaged(name, settings, sabotage);
    expect(faults).not.toEqual([]);
    for (const line of faults) expect(line).toMatch(fault);
  });

  it('compare tells what others have lost as a figure, because they promise no more', async () => {
    const settings = { ...brief, sockets: 20, rate: 50, settle: 0, peers: ['nats'] };
    const result = await runSabotaged('compare', settings, missing);
    expect(result.faults).toEqual([]);
    expect(result.settings['missed']).toBe(`nats: ${oneMissing}`);
  });
});

it('the command ends with 1, prints the fault, and writes a result that can be read', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'topicast-bench-'));
  const file = join(folder, 'fanout.json');
  const args =
    '--subjects node-live --sockets 20 --rate 20 --bytes 2000 --seconds 1 --warm-up 0 --rounds 1 --json'.split(
      ' ',
    );
  // The node refuses every message.
  const child = runCli(['bench', 'fanout', ...args, file], { TOPICAST_LIMIT_PAYLOAD_BYTES: '1024' });
  expect(await child.exited, child.stderr).toBe(1);
  const result = parseResult(await readFile(file, 'utf8'));
  await rm(folder, { recursive: true });
  expect(child.stderr).toContain('fault: node-live: 0 deliveries instead of 400');
  expect(child.stderr).toContain('error: fanout has failed: node-live: 0 deliveries instead of 400');
  expect(result.faults).toContain('node-live: 0 deliveries instead of 400');
  expect(result.rows[0]?.figures).toMatchObject({ deliveries: 0 });
});

async function runSabotaged(
  name: string,
  settings: Readonly<Record<string, unknown>>,
  sabotage: Sabotage,
): Promise<BenchResult> {
  const scenario = scenarios.find((one) => one.name === name);
  if (scenario === undefined) throw new Error(`there is no scenario ${name}`);
  const progress = { say: () => undefined, bar: () => undefined, done: () => undefined };
  return runScenario(
    { ...scenario, run: (context, values) => scenario.run(sabotaged(context, sabotage), values) },
    settings,
    { signal: new AbortController().signal, progress, version: '0' },
  );
}

function sabotaged(context: ScenarioContext, sabotage: Sabotage): ScenarioContext {
  const { node: spoil, state: change } = sabotage;
  const startNode: ScenarioContext['startNode'] = async (options) => {
    const node = await context.startNode(options);
    if (spoil !== undefined) context.defer(await spoil(node));
    return node;
  };
  return {
    ...context,
    startNode,
    scope: (run) => context.scope((inner) => run(sabotaged(inner, sabotage))),
    startFleet: async (options) => {
      const fleet = await context.startFleet(options);
      return change === undefined ? fleet : miscounting(fleet, change);
    },
  };
}

/** The very fleet, but for what it says of its sockets once they are open. */
function miscounting(fleet: Fleet, change: NonNullable<Sabotage['state']>): Fleet {
  const changed = (state: FleetState): FleetState => ({ ...state, ...change(state) });
  return {
    sockets: fleet.sockets,
    processes: fleet.processes,
    died: fleet.died,
    open: (ramp, onProgress) => fleet.open(ramp, onProgress),
    state: async () => changed(await fleet.state()),
    begin: () => fleet.begin(),
    measured: async () => {
      const measure = await fleet.measured();
      return { ...measure, state: changed(measure.state) };
    },
    delivered: async (messages, stalledMs) => changed(await fleet.delivered(messages, stalledMs)),
    drop: (share) => fleet.drop(share),
    close: () => fleet.close(),
    stop: () => fleet.stop(),
  };
}

/** Takes offsets that the scenario is not answered. */
function publishBeside({ url }: RunningNode): Promise<() => void> {
  const stopping = new AbortController();
  const publishing = (async () => {
    while (!stopping.signal.aborted) {
      await fetch(`${url}/v1/topics/item.publish-0/messages`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: '1',
      });
    }
  })();
  // The node is gone before the publisher.
  publishing.catch(() => undefined);
  return Promise.resolve(() => stopping.abort());
}

/** A user more than those of the scenario. */
async function connectBeside({ url }: RunningNode): Promise<() => void> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/connect?user=beside&topics=item.1`);
  socket.on('error', () => socket.terminate());
  await new Promise((resolve) => socket.once('message', resolve));
  return () => socket.terminate();
}
