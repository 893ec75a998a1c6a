import type { Fleet } from '../fleet/fleet.js';
import { cpuSecondsOf, rssBytesOf } from '../fleet/usage.js';
import { stateFaults } from './delivery.js';
import { memoryEach, memoryReader } from './memory-of.js';
import { settleOption, whole } from './options.js';
import { defineScenario, type ScenarioContext } from './scenario.js';
import { poolGroups, poolOptions, secretOf, serversOf } from './sessions.js';
import { pause, sum, untilSteady } from './waiting.js';

const options = {
  sockets: whole('sessions', 10_000, 100, 1_000_000),
  nodes: whole('that share them; each holds 19,500 at most', 1, 1, 100),
  topics: whole('that each session subscribes to', 2, 0, 100),
  ...poolOptions,
  settle: settleOption,
  idle: whole('seconds for which CPU is counted then', 20, 1, 600),
};

/** Sessions of a node that come before memory is first read. */
const firstMax = 2000;

/** What a session costs that does nothing: memory of the node, and CPU of its heartbeats and refreshes. */
export const idle = defineScenario({
  name: 'idle',
  summary: 'Memory and CPU of sessions that are registered, subscribed and quiet.',
  options,
  async run(context, values) {
    const servers = await serversOf(context, values.engine);
    const memory = memoryReader(context);
    const nodes = await context.startNodes(values.nodes, {
      ...(servers === undefined ? {} : { servers }),
      env: { ...memory.options.env, TOPICAST_JWT_SECRET: secretOf(), TOPICAST_CONNECT_RATE: '1000000' },
      flags: memory.options.flags,
    });
    const pids = nodes.map(({ pid }) => pid);
    // With the first ones the process grows by what is not theirs. They stay: what they would leave behind would be used again by others, unseen.
    const first = Math.min(firstMax * values.nodes, Math.floor(values.sockets / 2));
    const firstFleet = await idleFleet(context, nodes, first, { ...values, prefix: 'first' });
    await context.openFleet(firstFleet);
    const before = await memory.read(pids, values.settle);
    const fleet = await idleFleet(context, nodes, values.sockets - first, values);
    await context.openFleet(fleet);
    await untilSteady(() => sum(pids.map(rssBytesOf)), values.settle, context.signal);
    const cpu = sum(pids.map(cpuSecondsOf));
    await pause(values.idle, context.signal);
    const used = sum(pids.map(cpuSecondsOf)) - cpu;
    const after = await memory.read(pids, values.settle);
    const each = memoryEach(before, after, values.sockets - first);
    const states = [await firstFleet.state(), await fleet.state()];
    const ready = sum(states.map((state) => state.ready));
    const { codec, engine, sockets, topics } = values;
    return {
      rows: [
        {
          labels: { engine, codec, topics, nodes: values.nodes },
          figures: {
            sockets,
            rssBytesPerSession: each.rss,
            heapBytesPerSession: each.heap,
            serverRssMb: after.rss / 1e6,
            serverCpuShare: used / values.idle,
          },
        },
      ],
      faults: [
        ...states.flatMap(stateFaults),
        ...(ready === sockets ? [] : [`${ready} of ${sockets} sessions are left`]),
      ],
      doubts: [],
    };
  },
});

/** Registered sessions that do nothing. @param values.prefix of their users' names */
export function idleFleet(
  context: ScenarioContext,
  nodes: readonly { readonly url: string }[],
  sockets: number,
  values: {
    readonly topics: number;
    readonly pool: number;
    readonly codec: 'json' | 'msgpack';
    readonly prefix?: string;
  },
): Promise<Fleet> {
  return context.startFleet({
    urls: nodes.map(({ url }) => url),
    sockets,
    groups: poolGroups('idle', values.pool, values.topics),
    codec: values.codec,
    users: { prefix: values.prefix ?? 'idle', secret: secretOf() },
    check: 'none',
  });
}
