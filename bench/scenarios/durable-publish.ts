import { loadOverHttp } from '../publish/http-load.js';
import { cpuSecondsOf } from '../fleet/usage.js';
import type { ResultRow } from '../result/result.js';
import { clientDoubt } from './delivery.js';
import { profileFlags, profileOption, whole, wholes, type OptionValues } from './options.js';
import { defineScenario, type ScenarioContext, type ScenarioOutcome } from './scenario.js';

const options = {
  replicas: wholes('copies of the stream: 1 on one server, 3 on three', [1, 3], 1, 3),
  batches: wholes('messages of a request; 1 posts each on its own', [1, 100, 1000], 1, 1000),
  single: whole('connections that publish one at a time', 64, 1, 1000),
  batched: whole('connections that publish batches', 4, 1, 1000),
  bytes: whole('of the payload of one message', 100, 2, 60_000),
  topics: whole('that the requests go round', 100, 1, 10_000),
  seconds: whole('how long a run counts', 5, 1, 600),
  warmUp: whole('seconds before that', 2, 0, 60),
  profile: profileOption,
};

type Values = OptionValues<typeof options>;

/** Durable publishes over HTTP to one node, as fast as the answers come. */
export const durablePublish = defineScenario({
  name: 'durable-publish',
  summary: 'How many durable messages a node takes over HTTP, and what one costs it and NATS.',
  options,
  async run(context, values) {
    const all: ScenarioOutcome[] = [];
    for (const replicas of values.replicas) {
      all.push(await context.scope((inner) => measure(inner, replicas === 1 ? 1 : 3, values)));
    }
    return {
      rows: all.flatMap(({ rows }) => rows),
      faults: all.flatMap(({ faults }) => faults),
      doubts: all.flatMap(({ doubts }) => doubts),
    };
  },
});

async function measure(context: ScenarioContext, replicas: 1 | 3, values: Values): Promise<ScenarioOutcome> {
  const servers = await context.startServers({ nats: replicas });
  const node = await context.startNode({
    servers,
    env: { TOPICAST_NATS_REPLICAS: String(replicas) },
    flags: profileFlags(values.profile),
  });
  const pids = [node.pid, ...(servers.nats?.nodes ?? []).map((server) => server.process.pid)];
  const topics = Array.from({ length: values.topics }, (_, i) => `item.publish-${i}`);
  const [rows, faults, doubts]: [ResultRow[], string[], string[]] = [[], [], []];
  for (const batch of values.batches) {
    context.signal.throwIfAborted();
    const connections = batch === 1 ? values.single : values.batched;
    const load = { url: node.url, connections, batch, topics, bytes: values.bytes };
    await loadOverHttp({ ...load, seconds: values.warmUp });
    const before = pids.map(cpuSecondsOf);
    const result = await loadOverHttp({ ...load, seconds: values.seconds });
    const [nodeSec = 0, ...natsSec] = pids.map((pid, i) => cpuSecondsOf(pid) - (before[i] ?? 0));
    const { cpuSec, published, seconds, timesMs } = result;
    const label = `R${replicas}, ${batch} a request`;
    faults.push(...result.faults.map((fault) => `${label}: ${fault}`));
    const doubt = clientDoubt(label, cpuSec / seconds);
    if (doubt !== undefined) {
      doubts.push(doubt);
      continue;
    }
    const at = (share: number): number => timesMs[Math.floor((timesMs.length - 1) * share)] ?? 0;
    const figures = {
      publishesPerSec: published / seconds,
      cpuUsPerPublish: (nodeSec * 1e6) / published,
      natsCpuUsPerPublish: (natsSec.reduce((sum, sec) => sum + sec, 0) * 1e6) / published,
      serverCpuShare: nodeSec / seconds,
      clientCpuShare: cpuSec / seconds,
      p50Ms: at(0.5),
      p99Ms: at(0.99),
    };
    rows.push({ labels: { replicas, batch, connections, bytes: values.bytes }, figures });
  }
  return { rows, faults, doubts };
}
