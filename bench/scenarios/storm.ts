import { cpuSecondsOf } from '../fleet/usage.js';
import { clientDoubt, stateFaults } from './delivery.js';
import { whole } from './options.js';
import { defineScenario } from './scenario.js';
import { poolGroups, poolOptions, secretOf, serversOf } from './sessions.js';
import { pause, sum } from './waiting.js';

const options = {
  sockets: whole('sessions on all nodes', 10_000, 100, 58_000),
  nodes: whole('that share them', 2, 1, 20),
  rate: whole('connections a second that the whole cluster lets in', 2000, 1, 1_000_000),
  atOnce: whole('handshakes under way at once', 1000, 1, 10_000),
  topics: whole('that each session subscribes to', 2, 0, 50),
  ...poolOptions,
  pause: whole('seconds between the end of all sessions and their return', 3, 1, 600),
};

/** Everybody is cut at once and comes back at once; those who are turned away (503) come again when `Retry-After` says. */
export const storm = defineScenario({
  name: 'storm',
  summary:
    'How long it takes until all are in again that come back at the same moment, against the rate at which they may.',
  options,
  async run(context, values) {
    const { atOnce, codec, engine, pool, rate, sockets, topics } = values;
    const servers = await serversOf(context, engine);
    const nodes = await context.startNodes(engine === 'embedded' ? 1 : values.nodes, {
      ...(servers === undefined ? {} : { servers }),
      env: { TOPICAST_JWT_SECRET: secretOf(), TOPICAST_CONNECT_RATE: String(rate) },
    });
    const pids = nodes.map(({ pid }) => pid);
    const fleet = await context.startFleet({
      urls: nodes.map(({ url }) => url),
      sockets,
      groups: poolGroups('storm', pool, topics),
      codec,
      users: { prefix: 'storm', secret: secretOf() },
    });
    await context.openFleet(fleet, { perSec: rate * 0.8 });
    const before = await fleet.drop(1);
    await pause(values.pause, context.signal);

    await fleet.begin();
    const cpu = pids.map(cpuSecondsOf);
    await context.openFleet(fleet, { perSec: 1_000_000, atOnce, retryRefused: true });
    const { cpuShareMax, handshakes, seconds, state } = await fleet.measured();
    const used = sum(pids.map((pid, i) => cpuSecondsOf(pid) - (cpu[i] ?? 0)));
    const refused = state.refused - before.refused;
    const ideal = idealSeconds(sockets, rate);
    const doubt = clientDoubt('storm', cpuShareMax);
    const row = {
      labels: { engine, codec, nodes: nodes.length, rate },
      figures: {
        sockets,
        seconds,
        idealSeconds: ideal,
        refused,
        handshakesPerSec: sockets / seconds,
        serverCpuShare: used / seconds,
        clientCpuShare: cpuShareMax,
        p50Ms: handshakes.ms(0.5),
        p99Ms: handshakes.ms(0.99),
      },
    };
    return {
      rows: doubt === undefined ? [row] : [],
      faults: [
        ...stateFaults(state),
        ...(state.ready === sockets ? [] : [`${state.ready} of ${sockets} sessions are back`]),
        ...(seconds >= ideal * leniency
          ? []
          : [`let in ${sockets} in ${seconds.toFixed(1)} s, faster than the rate`]),
      ],
      doubts: doubt === undefined ? [] : [doubt],
    };
  },
});

/** Nodes learn of each other's coming and going with some delay. */
const leniency = 0.9;

/** The rate, used in full. Each node holds one second's worth when nobody has come for a while. */
export function idealSeconds(sockets: number, rate: number): number {
  return Math.max(0, sockets / rate - 1);
}
