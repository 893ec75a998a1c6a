import type { Fleet } from '../fleet/fleet.js';
import { cpuSecondsOf, rssBytesOf } from '../fleet/usage.js';
import { stateFaults } from './delivery.js';
import { whole } from './options.js';
import { defineScenario, type ScenarioContext } from './scenario.js';
import { poolGroups, poolOptions, secretOf, serversOf } from './sessions.js';
import { pause, sum } from './waiting.js';

const options = {
  sockets: whole('sessions', 10_000, 100, 1_000_000),
  nodes: whole('that share them; each holds 19,500 at most', 1, 1, 100),
  topics: whole('that each session subscribes to', 2, 0, 100),
  ...poolOptions,
  settle: whole(
    'seconds to wait before memory is read: V8 gives back what it does not need after some ten',
    30,
    1,
    600,
  ),
  idle: whole('seconds for which CPU is counted then', 20, 1, 600),
};

/** What a session costs that does nothing: memory of the node, and CPU of its heartbeats and refreshes. */
export const idle = defineScenario({
  name: 'idle',
  summary: 'Memory and CPU of sessions that are registered, subscribed and quiet.',
  options,
  async run(context, values) {
    const servers = await serversOf(context, values.engine);
    const nodes = await context.startNodes(values.nodes, {
      ...(servers === undefined ? {} : { servers }),
      env: { TOPICAST_JWT_SECRET: secretOf(), TOPICAST_CONNECT_RATE: '1000000' },
    });
    const pids = nodes.map(({ pid }) => pid);
    // A first few thousand, closed again: what the process grows by once is not a session's.
    await context.scope(async (inner) => {
      await inner.openFleet(await idleFleet(inner, nodes, 2000, values));
    });
    await pause(values.settle);
    const before = sum(pids.map(rssBytesOf));
    const fleet = await idleFleet(context, nodes, values.sockets, values);
    await context.openFleet(fleet);
    await pause(values.settle);
    const rss = sum(pids.map(rssBytesOf));
    const cpu = sum(pids.map(cpuSecondsOf));
    await pause(values.idle);
    const used = sum(pids.map(cpuSecondsOf)) - cpu;
    const state = await fleet.state();
    const { codec, engine, sockets, topics } = values;
    return {
      rows: [
        {
          labels: { engine, codec, topics, nodes: values.nodes },
          figures: {
            sockets,
            rssBytesPerSession: (rss - before) / sockets,
            serverRssMb: rss / 1e6,
            serverCpuShare: used / values.idle,
          },
        },
      ],
      faults: [
        ...stateFaults(state),
        ...(state.ready === sockets ? [] : [`${state.ready} of ${sockets} sessions are left`]),
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
