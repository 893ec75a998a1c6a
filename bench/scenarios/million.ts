import type { RunningNode } from '../demo/node-process.js';
import type { Fleet } from '../fleet/fleet.js';
import { nativeHerd } from '../fleet/native-herd.js';
import { openPublisher, type Publisher } from '../fleet/publisher.js';
import { machineMemory } from '../result/memory.js';
import type { ResultRow } from '../result/result.js';
import { redisDataBytes } from '../servers/redis-info.js';
import { stateFaults } from './delivery.js';
import {
  cpuAccount,
  cpuSince,
  memoryAccount,
  memoryText,
  type MemoryAccount,
  type Processes,
} from './million-accounts.js';
import { costs, limitsHere, nodesFor, shortfall } from './million-needs.js';
import { choice, whole, type OptionValues } from './options.js';
import { defineScenario, type ScenarioContext, type ScenarioOutcome } from './scenario.js';
import { poolGroups } from './sessions.js';
import { pause } from './waiting.js';

const options = {
  sockets: whole('sessions in all', 1_000_000, 100, 10_000_000),
  perNode: whole('that one node holds at most', 19_500, 1, 1_000_000),
  topics: whole('of a pool that each session has beside the one for everybody', 1, 0, 50),
  pool: whole('topics of that pool', 100, 1, 100_000),
  delivery: choice('of the topic for everybody', ['durable', 'live'], 'durable'),
  redis: choice('what holds the sessions', ['cluster', 'one'], 'cluster'),
  rate: whole('handshakes a second at most', 4000, 1, 1_000_000),
  atOnce: whole('handshakes under way at once', 520, 1, 10_000),
  nodesAtOnce: whole('nodes that are filled at the same time', 4, 1, 1000),
  ping: whole('seconds after which a node pings a quiet session; the shipped setting is 30', 120, 1, 179),
  settle: whole('seconds to wait before memory is read', 30, 1, 3600),
  idle: whole('seconds for which the CPU of quiet sessions is counted', 60, 1, 3600),
  broadcasts: whole('messages to everybody, one after the other', 5, 1, 1000),
  bytes: whole('of the data of one', 80, 60, 100_000),
};

type Values = OptionValues<typeof options>;

/** As many sockets as a machine holds, all registered, and one message to all of them. */
export const million = defineScenario({
  name: 'million',
  summary: 'A million sockets on one machine, on a cluster of nodes, and one message to all of them.',
  options,
  async run(context, values) {
    const problem = shortfall(values, limitsHere());
    if (problem !== undefined) throw new Error(problem);
    const parts = await startAll(context, values);
    return Promise.race([measure(context, values, parts), memoryGuard(context, parts)]);
  },
});

async function measure(context: ScenarioContext, values: Values, parts: Parts): Promise<ScenarioOutcome> {
  const { fleet, processes, publisher, redisBytes } = parts;
  const start = memoryAccount(processes);
  const redisStart = await redisBytes();
  context.progress.say(memoryText(start));
  const rows = [await openAll(context, values, parts)];
  await pause(values.settle, context.signal);
  rows.push(memoryRow(values, start, memoryAccount(processes), (await redisBytes()) - redisStart));
  context.progress.say(memoryText(memoryAccount(processes)));
  rows.push(await idleRow(context, values, parts));
  const faults: string[] = [];
  for (let number = 1; number <= values.broadcasts; number++) {
    const { fault, row } = await broadcast(context, values, parts, number);
    rows.push(row);
    faults.push(...fault);
  }
  const state = await fleet.state();
  faults.push(...stateFaults(state), ...publisher.refused);
  if (state.ready !== values.sockets) faults.push(`${state.ready} of ${values.sockets} sessions are left`);
  // However long that takes: a process that is ended with its sockets open leaves their ports to linger.
  await fleet.close();
  return { rows, faults, doubts: [], settings: { nodes: nodesFor(values) } };
}

const guardMs = 500;

/** Ends the run before the system has to end something. */
function memoryGuard(context: ScenarioContext, { fleet, processes }: Parts): Promise<never> {
  return new Promise((_, reject) => {
    const timer = setInterval(() => {
      if (machineMemory().available >= costs.reserve) return;
      clearInterval(timer);
      const memory = memoryText(memoryAccount(processes));
      fleet
        .state()
        .then(
          ({ ready }) => reject(new Error(`ended at ${ready} sockets, as memory runs out: ${memory}`)),
          reject,
        );
    }, guardMs);
    context.defer(() => clearInterval(timer));
  });
}

async function openAll(
  context: ScenarioContext,
  { atOnce, rate, sockets }: Values,
  { fleet, processes }: Parts,
): Promise<ResultRow> {
  await fleet.begin();
  const before = cpuAccount(processes);
  await context.openFleet(fleet, { perSec: rate, atOnce });
  const { handshakes, seconds, state } = await fleet.measured();
  const used = cpuSince(processes, before);
  return {
    labels: { what: 'opening' },
    figures: {
      sockets: state.ready,
      seconds,
      handshakesPerSec: state.ready / seconds,
      cpuUsPerHandshake: (used.nodes * 1e6) / sockets,
      redisCpuUsPerConnect: (used.redis * 1e6) / sockets,
      refused: state.refused,
      serverCpuShare: used.nodes / seconds,
      redisCpuShare: used.redis / seconds,
      clientCpuShareAll: used.clients / seconds,
      p50Ms: handshakes.ms(0.5),
      p99Ms: handshakes.ms(0.99),
      maxMs: handshakes.ms(1),
    },
  };
}

function memoryRow(
  { sockets }: Values,
  before: MemoryAccount,
  after: MemoryAccount,
  redisBytes: number,
): ResultRow {
  return {
    labels: { what: 'memory' },
    figures: {
      sockets,
      rssBytesPerSession: (after.own.nodes - before.own.nodes) / sockets,
      kernelBytesPerSocket: (after.machine.kernel - before.machine.kernel) / sockets,
      clientBytesPerSocket: (after.own.clients - before.own.clients) / sockets,
      redisBytesPerUser: redisBytes / sockets,
      serverRssMb: after.own.nodes / 1e6,
      availableMb: after.machine.available / 1e6,
    },
  };
}

/** What heartbeats and refreshes cost. */
async function idleRow(
  context: ScenarioContext,
  { idle, sockets }: Values,
  { processes }: Parts,
): Promise<ResultRow> {
  const before = cpuAccount(processes);
  await pause(idle, context.signal);
  const used = cpuSince(processes, before);
  return {
    labels: { what: 'quiet' },
    figures: {
      sockets,
      serverCpuShare: used.nodes / idle,
      redisCpuShare: used.redis / idle,
      clientCpuShareAll: used.clients / idle,
    },
  };
}

/** The longest that nothing may come while a message is on its way. */
const stalledMs = 30_000;

async function broadcast(
  context: ScenarioContext,
  { sockets }: Values,
  { fleet, processes, publisher }: Parts,
  number: number,
): Promise<{ readonly row: ResultRow; readonly fault: readonly string[] }> {
  await fleet.begin();
  const before = cpuAccount(processes);
  await publisher.send(1, 1, context.signal);
  await fleet.delivered(sockets * number, stalledMs);
  const { latencies, seconds, state } = await fleet.measured();
  const used = cpuSince(processes, before);
  const deliveries = state.messagesSinceBegin;
  context.progress.say(
    `message ${number}: ${deliveries} deliveries, the last after ${latencies.ms(1).toFixed(0)} ms`,
  );
  return {
    row: {
      labels: { what: `message ${number}` },
      figures: {
        sockets,
        deliveries,
        deliveriesPerSec: deliveries / (latencies.ms(1) / 1000),
        cpuUsPerDelivery: (used.nodes * 1e6) / deliveries,
        serverCpuShare: used.nodes / seconds,
        clientCpuShareAll: used.clients / seconds,
        p50Ms: latencies.ms(0.5),
        p99Ms: latencies.ms(0.99),
        maxMs: latencies.ms(1),
      },
      latency: latencies.curve(),
    },
    fault:
      deliveries === sockets ? [] : [`message ${number}: ${deliveries} deliveries instead of ${sockets}`],
  };
}

/** Flags of Node.js that keep fifty nodes small. */
const leanFlags = ['--max-semi-space-size=8'];

interface Parts {
  readonly fleet: Fleet;
  readonly publisher: Publisher;
  readonly processes: Processes;
  readonly redisBytes: () => Promise<number>;
}

async function startAll(context: ScenarioContext, values: Values): Promise<Parts> {
  const { bytes, delivery, nodesAtOnce, pool, sockets, topics } = values;
  const program = await nativeHerd();
  const servers = await context.startServers({ nats: 1, redis: values.redis });
  const env = { TOPICAST_PING_SEC: String(values.ping), TOPICAST_CONNECT_RATE: '1000000' };
  const nodes: RunningNode[] = [];
  const count = nodesFor(values);
  while (nodes.length < count) {
    nodes.push(await context.startNode({ servers, flags: leanFlags, env }));
    context.progress.bar('nodes started', nodes.length, count);
  }
  const urls = nodes.map(({ url }) => url);
  const everybody = delivery === 'durable' ? 'coupon.everybody' : 'live.everybody';
  const fleet = await context.startFleet({
    urls,
    sockets,
    processes: count,
    spread: 'processes',
    processesAtOnce: nodesAtOnce,
    groups: poolGroups('million', pool, topics).map((group) => [everybody, ...group]),
    users: { prefix: 'user' },
    firstNumber: 0,
    program,
    socketsPerProcessMax: values.perNode,
  });
  const publisher = await openPublisher({ url: urls[0] ?? '', bytes, topics: [everybody] });
  context.defer(() => publisher.close());
  const { nats, redis } = servers;
  if (redis === undefined) throw new Error('there is no Redis');
  return {
    fleet,
    publisher,
    processes: {
      nodes: nodes.map(({ pid }) => pid),
      redis: redis.nodes.map((node) => node.process.pid),
      nats: (nats?.nodes ?? []).map((node) => node.process.pid),
      clients: fleet.processes.map(({ pid }) => pid),
    },
    redisBytes: () => redisDataBytes(redis),
  };
}
