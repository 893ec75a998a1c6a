import type { RunningNode } from '../demo/node-process.js';
import type { Fleet } from '../fleet/fleet.js';
import { cpuSecondsOf } from '../fleet/usage.js';
import { loadPushes } from '../publish/push-load.js';
import { clientDoubt, stateFaults } from './delivery.js';
import { choice, whole, wholes, type OptionValues } from './options.js';
import { defineScenario, type ScenarioContext, type ScenarioOutcome } from './scenario.js';
import type { Servers } from './servers.js';
import { pause, sum, untilState } from './waiting.js';

const options = {
  users: whole('online, one session each', 1000, 1, 19_500),
  connections: wholes('that push one at a time', [1, 64], 1, 1000),
  bytes: whole('of the payload', 100, 60, 60_000),
  codec: choice('of the clients', ['json', 'msgpack'], 'json'),
  seconds: whole('how long a run counts', 5, 1, 600),
  warmUp: whole('seconds before that', 2, 1, 60),
};

type Values = OptionValues<typeof options>;

/** Pushes over HTTP to one node, to users whose sessions are on another, kept in Redis until they are acknowledged. */
export const direct = defineScenario({
  name: 'direct',
  summary: 'What a push to one online user costs the nodes and Redis, and how long it takes to arrive.',
  options,
  async run(context, values) {
    const servers = await context.startServers({ nats: 1, redis: 'cluster' });
    const env = { TOPICAST_CONNECT_RATE: '1000000' };
    const asked = await context.startNode({ servers, env });
    const home = await context.startNode({ servers, env });
    const fleet = await context.startFleet({
      urls: [home.url],
      sockets: values.users,
      groups: [[]],
      codec: values.codec,
      users: { prefix: 'direct' },
      check: 'none',
    });
    await context.openFleet(fleet);
    const outcomes: ScenarioOutcome[] = [];
    let due = 0;
    for (const connections of values.connections) {
      const parts = { asked, home, fleet, servers, connections, due };
      const outcome = await measure(context, parts, values);
      due = outcome.due;
      outcomes.push(outcome);
    }
    return {
      rows: outcomes.flatMap(({ rows }) => rows),
      faults: outcomes.flatMap(({ faults }) => faults),
      doubts: outcomes.flatMap(({ doubts }) => doubts),
    };
  },
});

interface Parts {
  readonly asked: RunningNode;
  readonly home: RunningNode;
  readonly fleet: Fleet;
  readonly servers: Servers;
  readonly connections: number;
  /** Pushes that have been received before. */
  readonly due: number;
}

async function measure(
  context: ScenarioContext,
  parts: Parts,
  values: Values,
): Promise<ScenarioOutcome & { readonly due: number }> {
  const { asked, connections, fleet, home, servers } = parts;
  const { signal } = context;
  const load = {
    url: asked.url,
    connections,
    users: Array.from({ length: values.users }, (_, i) => `direct${i}`),
    bytes: values.bytes,
  };
  const warm = await loadPushes({ ...load, seconds: values.warmUp });
  const settled = parts.due + warm.sent;
  await untilState(fleet, ({ directs }) => directs >= settled, arrivalSecMax, signal);

  await fleet.begin();
  const redisPids = (servers.redis?.nodes ?? []).map((server) => server.process.pid);
  const pids = [asked.pid, home.pid, ...redisPids];
  const before = pids.map(cpuSecondsOf);
  const run = await loadPushes({ ...load, seconds: values.seconds });
  const due = settled + run.sent;
  await untilState(fleet, ({ directs }) => directs >= due, arrivalSecMax, signal);
  const [askedSec = 0, homeSec = 0, ...redisSec] = pids.map((pid, i) => cpuSecondsOf(pid) - (before[i] ?? 0));
  const clients = await fleet.measured();
  // One that comes twice comes later than the first.
  await pause(repeatSec, signal);
  const state = await fleet.state();
  const label = `${connections} connections`;
  const doubt = clientDoubt(label, Math.max(clients.cpuShareMax, run.cpuSec / run.seconds));
  const row = {
    labels: { codec: values.codec, connections, users: values.users },
    figures: {
      pushesPerSec: run.sent / run.seconds,
      cpuUsPerPush: ((askedSec + homeSec) * 1e6) / run.sent,
      redisCpuUsPerPush: (sum(redisSec) * 1e6) / run.sent,
      serverCpuShare: Math.max(askedSec, homeSec) / run.seconds,
      clientCpuShare: Math.max(clients.cpuShareMax, run.cpuSec / run.seconds),
      p50Ms: clients.latencies.ms(0.5),
      p99Ms: clients.latencies.ms(0.99),
      maxMs: clients.latencies.ms(1),
    },
    latency: clients.latencies.curve(),
  };
  return {
    due,
    rows: doubt === undefined ? [row] : [],
    faults: [
      ...warm.faults,
      ...run.faults,
      ...stateFaults(state),
      ...(state.directs === due ? [] : [`${state.directs} pushes received instead of ${due}`]),
    ].map((fault) => `${label}: ${fault}`),
    doubts: doubt === undefined ? [] : [doubt],
  };
}

const arrivalSecMax = 10;
const repeatSec = 1;
