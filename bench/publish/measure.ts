import { fileURLToPath } from 'node:url';
import { cpuSecondsOf } from '../fleet/usage.js';
import { startNode } from '../demo/node-process.js';
import { startNats, startNatsCluster } from '../servers/nats-kit.js';
import type { ResultRow } from '../result/result.js';
import { loadOverHttp, type HttpLoadSettings } from './http-load.js';

export interface PublishOptions {
  /** Copies of the stream: 1 on one server, 3 on three. */
  readonly replicas: 1 | 3;
  readonly bytes: number;
  readonly seconds: number;
  /** What is measured in turn, on the same servers. */
  readonly loads: readonly { readonly batch: number; readonly connections: number }[];
  readonly progress?: (text: string) => void;
  readonly signal?: AbortSignal;
}

export interface PublishMeasure {
  readonly rows: readonly ResultRow[];
  readonly faults: readonly string[];
  readonly doubts: readonly string[];
}

const entry = fileURLToPath(new URL('../../node/main.js', import.meta.url));
const warmUpSec = 2;
/** A load process this busy may have been what held things up. */
const clientShareMax = 0.8;

/**
 * Durable publishes over HTTP to one node: how many a second it takes as fast as answers come, and what each costs the node and NATS.
 * @throws Error when servers or the node cannot be started
 */
export async function measurePublishes(options: PublishOptions): Promise<PublishMeasure> {
  const { bytes, loads, progress = () => undefined, replicas, seconds, signal } = options;
  const nats = await (replicas === 1 ? startNats() : startNatsCluster(replicas));
  try {
    const node = await startNode(entry, {
      TOPICAST_HOST: '127.0.0.1',
      TOPICAST_PORT: '0',
      TOPICAST_LOG_LEVEL: 'error',
      TOPICAST_DRAIN_SEC: '0',
      TOPICAST_NATS_URL: nats.urls.join(','),
      TOPICAST_NATS_REPLICAS: String(replicas),
    });
    try {
      const natsPids = nats.nodes.map((server) => server.process.pid);
      const [rows, faults, doubts]: [ResultRow[], string[], string[]] = [[], [], []];
      for (const load of loads) {
        signal?.throwIfAborted();
        const topics = Array.from({ length: 100 }, (_, i) => `item.bench-${i}`);
        const settings = { url: node.url, topics, bytes, ...load };
        progress(`R${replicas}, ${load.batch} a request, ${load.connections} connections`);
        await loadOverHttp({ ...settings, seconds: warmUpSec });
        const row = await measureOne({ ...settings, seconds }, node.pid, natsPids, faults);
        const labels = { replicas: `R${replicas}`, ...load, bytes };
        const { clientCpuShare = 0 } = row.figures;
        if (clientCpuShare > clientShareMax) {
          doubts.push(
            `R${replicas}, ${load.batch} a request: the client used ${(clientCpuShare * 100).toFixed(0)} % of a core`,
          );
        } else rows.push({ ...row, labels });
      }
      return { rows, faults, doubts };
    } finally {
      await node.stop();
    }
  } finally {
    await nats.stop();
  }
}

async function measureOne(
  settings: HttpLoadSettings,
  nodePid: number,
  natsPids: readonly number[],
  faults: string[],
): Promise<ResultRow> {
  const pids = [nodePid, ...natsPids];
  const before = pids.map(cpuSecondsOf);
  const result = await loadOverHttp(settings);
  const [nodeSec = 0, ...natsSec] = pids.map((pid, i) => cpuSecondsOf(pid) - (before[i] ?? 0));
  faults.push(...result.faults.map((fault) => `${settings.batch} a request: ${fault}`));
  const { cpuSec, published, seconds, timesMs } = result;
  const at = (share: number): number =>
    timesMs[Math.min(timesMs.length - 1, Math.floor(timesMs.length * share))] ?? 0;
  return {
    labels: {},
    figures: {
      publishesPerSec: published / seconds,
      cpuUsPerPublish: (nodeSec * 1e6) / published,
      natsCpuUsPerPublish: (natsSec.reduce((sum, sec) => sum + sec, 0) * 1e6) / published,
      p50Ms: at(0.5),
      p99Ms: at(0.99),
      serverCpuShare: nodeSec / seconds,
      clientCpuShare: cpuSec / seconds,
      seconds,
    },
  };
}
