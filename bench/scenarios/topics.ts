import { stateFaults } from './delivery.js';
import { memoryEach, memoryReader, type MemoryEach } from './memory-of.js';
import { choice, settleOption, whole, wholes } from './options.js';
import { defineScenario, type ScenarioContext } from './scenario.js';
import type { ResultRow } from '../result/result.js';
import { serversOf } from './sessions.js';

const options = {
  topics: wholes('hosted by the node, one after the other', [10, 1000, 10_000, 100_000], 10, 1_000_000),
  perSocket: whole('topics that one client subscribes to', 100, 1, 100),
  engine: choice('what the node connects to', ['cluster', 'embedded'], 'cluster'),
  settle: settleOption,
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
      const { each, failures } = await context.scope(async (inner) => {
        return measure(inner, engine, sockets, perSocket, settle);
      });
      faults.push(...failures);
      rows.push({
        labels: { engine, topics: count },
        figures: {
          sockets,
          rssBytesPerTopic: each.rss,
          heapBytesPerTopic: each.heap,
        },
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
): Promise<{ each: MemoryEach; failures: string[] }> {
  const servers = await serversOf(context, engine);
  const memory = memoryReader(context);
  const node = await context.startNode({
    ...(servers === undefined ? {} : { servers }),
    env: { ...memory.options.env, TOPICAST_CONNECT_RATE: '1000000' },
    flags: memory.options.flags,
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
  const before = await memory.read([node.pid], settleSec);
  const fleet = await fleetOf('hosted', sockets);
  await context.openFleet(fleet);
  const after = await memory.read([node.pid], settleSec);
  return {
    each: memoryEach(before, after, sockets * perSocket),
    failures: stateFaults(await fleet.state()),
  };
}
