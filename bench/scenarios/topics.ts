import { rssBytesOf } from '../fleet/usage.js';
import { stateFaults } from './delivery.js';
import { choice, whole, wholes } from './options.js';
import { defineScenario, type ScenarioContext } from './scenario.js';
import type { ResultRow } from '../result/result.js';
import { serversOf } from './sessions.js';
import { pause } from './waiting.js';

const options = {
  topics: wholes('hosted by the node, one after the other', [10, 1000, 10_000, 100_000], 10, 1_000_000),
  perSocket: whole('topics that one client subscribes to', 100, 1, 100),
  engine: choice('what the node connects to', ['cluster', 'embedded'], 'cluster'),
  settle: whole(
    'seconds to wait before memory is read: V8 gives back what it does not need after some ten',
    30,
    1,
    600,
  ),
};

/** What hosting a topic costs a node: the NATS subscription, the state and an empty ring. */
export const topics = defineScenario({
  name: 'topics',
  summary: 'Memory of a node by the number of durable topics that it hosts.',
  options,
  async run(context, { engine, perSocket, settle, topics: counts }) {
    const [rows, faults]: [ResultRow[], string[]] = [[], []];
    for (const count of counts) {
      const sockets = Math.ceil(count / perSocket);
      const { bytes, failures } = await context.scope(async (inner) => {
        const own = await measure(inner, engine, sockets, perSocket, settle);
        return own;
      });
      faults.push(...failures);
      rows.push({
        labels: { engine, topics: count },
        figures: { sockets, rssBytesPerTopic: bytes / count },
      });
    }
    return { rows, faults, doubts: [] };
  },
});

async function measure(
  context: ScenarioContext,
  engine: 'cluster' | 'embedded',
  sockets: number,
  perSocket: number,
  settleSec: number,
): Promise<{ bytes: number; failures: string[] }> {
  const servers = await serversOf(context, engine);
  const node = await context.startNode({
    ...(servers === undefined ? {} : { servers }),
    env: { TOPICAST_CONNECT_RATE: '1000000' },
  });
  const fleetOf = (name: string, count: number) =>
    context.startFleet({
      urls: [node.url],
      sockets: count,
      groups: Array.from({ length: count }, (_, i) =>
        Array.from({ length: perSocket }, (__, k) => `item.${name}-${i * perSocket + k}`),
      ),
      check: 'none',
    });
  // What the process grows by once is not a topic's.
  const warm = await fleetOf('warm', 20);
  await context.openFleet(warm);
  await pause(settleSec);
  const before = rssBytesOf(node.pid);
  const fleet = await fleetOf('hosted', sockets);
  await context.openFleet(fleet);
  await pause(settleSec);
  return { bytes: rssBytesOf(node.pid) - before, failures: stateFaults(await fleet.state()) };
}
