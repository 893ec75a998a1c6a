import type { FigureName } from '../result/figures.js';
import type { BenchResult, ResultRow } from '../result/result.js';
import type { CostName, KnownCost, KnownCosts } from './costs.js';
import { wakesOf } from './demand.js';

/** A result with the file that it was read from. */
export interface ResultFile {
  readonly file: string;
  readonly result: BenchResult;
}

export interface MeasuredCosts {
  readonly costs: KnownCosts;
  /** Those that were measured, in the order of the files. */
  readonly taken: readonly CostName[];
  /** Files that told nothing, and why. */
  readonly left: readonly string[];
}

type Found = Partial<Record<CostName, number>>;

/**
 * Puts what was measured in place of what was believed. Of several measurements of one cost the newest run counts. A run with a fault tells
 * nothing. `mixed` is never learned from: it is what plans are checked against. All rows of `fanout` and `grow` are looked at together, because one
 * rate does not tell a write from a message.
 */
export function costsFrom(known: KnownCosts, files: readonly ResultFile[]): MeasuredCosts {
  const costs: Record<CostName, KnownCost> = { ...known };
  const taken = new Set<CostName>();
  const left: string[] = [];
  const inOrder = [...files].sort(
    (a, b) => rankOf(a.result) - rankOf(b.result) || a.result.startedAt.localeCompare(b.result.startedAt),
  );
  const deliveries: ResultRow[] = [];
  for (const { file, result } of inOrder) {
    const isSound = result.faults.length === 0;
    const isDelivery = isSound && rankOf(result) === 0;
    if (isDelivery) deliveries.push(...result.rows);
    const found = isDelivery ? deliveryCosts(deliveries, known) : isSound ? foundIn(result, costs) : {};
    const names = (Object.keys(found) as CostName[]).filter((name) => isCost(found[name]));
    if (names.length === 0) left.push(`${file}: ${whyNothing(result)}`);
    for (const name of names) {
      taken.add(name);
      costs[name] = measured(found[name] ?? 0, file, result);
    }
  }
  return { costs, taken: [...taken], left };
}

/** Costs that others are worked out with come first. */
function rankOf({ scenario }: BenchResult): number {
  return scenario === 'fanout' || scenario === 'grow' ? 0 : scenario === 'messages' ? 1 : 2;
}

function measured(
  value: number,
  file: string,
  { machine, scenario, startedAt, version }: BenchResult,
): KnownCost {
  const gigabytes = (machine.memoryBytes / 1e9).toFixed(0);
  return {
    value: Number(value.toPrecision(4)),
    basis: 'measured',
    from: `topicast bench ${scenario} (${version}), ${file}`,
    machine: `${machine.cpu}, ${machine.cores} cores, ${gigabytes} GB, ${machine.os}, Node.js ${machine.node}`,
    date: startedAt,
  };
}

function whyNothing(result: BenchResult): string {
  if (result.faults.length > 0) return `the run has failed (${result.faults[0] ?? ''})`;
  if (result.scenario === 'mixed') return 'plans are checked against mixed (--check), not made from it';
  return `no row of ${result.scenario} tells a cost`;
}

function isCost(value: number | undefined): boolean {
  return value !== undefined && Number.isFinite(value) && value >= 0;
}

function foundIn(result: BenchResult, costs: KnownCosts): Found {
  switch (result.scenario) {
    case 'connect':
      return fromRows(clusterRows(result), {
        handshakeUs: 'cpuUsPerHandshake',
        redisConnectUs: 'redisCpuUsPerConnect',
      });
    case 'idle':
      return idleCosts(result, costs);
    case 'topics':
      return topicCosts(result);
    case 'direct':
      return pushCosts(result.rows);
    case 'durable-publish':
      return publishCosts(result.rows);
    case 'messages':
      return messageCosts(result.rows, costs);
    case 'redis-memory':
      return redisCosts(result.rows);
    default:
      return {};
  }
}

/**
 * A line through the cost of a delivery against 1 / (messages of one write): its slope is the write, its start the message. One regime alone
 * cannot tell them apart: then both change by the same factor. By the squares of relative errors, as a delivery in tens costs a tenth.
 */
export function deliveryCosts(rows: readonly ResultRow[], costs: KnownCosts): Found {
  const points = rows.flatMap(({ figures, labels }) => {
    const { cpuUsPerDelivery: us, messagesPerRead: batch } = figures;
    const isNode = String(labels['subject']).startsWith('node-');
    return isNode && us !== undefined && batch !== undefined && batch >= 1
      ? [{ us, per: 1 / batch, weight: 1 / us ** 2 }]
      : [];
  });
  if (points.length === 0) return {};
  const mean = { us: average(points.map(({ us }) => us)), per: average(points.map(({ per }) => per)) };
  const fitted = lineThrough(points);
  if (fitted !== undefined) return { deliveryWriteUs: fitted.slope, deliveryMessageUs: fitted.start };
  const { deliveryMessageUs, deliveryWriteUs } = costs;
  const factor = mean.us / (deliveryMessageUs.value + deliveryWriteUs.value * mean.per);
  return {
    deliveryWriteUs: deliveryWriteUs.value * factor,
    deliveryMessageUs: deliveryMessageUs.value * factor,
  };
}

/** Rows whose batches are closer together than this say too little of the slope. */
const distinctPer = 0.15;

interface Point {
  readonly us: number;
  /** One over the number of things that shared the cost which is the slope. */
  readonly per: number;
  readonly weight?: number;
}

/** By least squares; through 0 when the start would be below it. Undefined when the points are too close together to tell, or the slope is not above 0. */
function lineThrough(
  points: readonly Point[],
): { readonly slope: number; readonly start: number } | undefined {
  const pers = points.map((point) => point.per);
  if (Math.max(...pers) - Math.min(...pers) <= 2 * distinctPer) return undefined;
  const all = points.reduce((sum, { weight = 1 }) => sum + weight, 0);
  const mean = (of: (point: Point) => number): number =>
    points.reduce((sum, point) => sum + of(point) * (point.weight ?? 1), 0) / all;
  const [us, per] = [mean((point) => point.us), mean((point) => point.per)];
  const slope =
    mean((point) => (point.per - per) * (point.us - us)) / mean((point) => (point.per - per) ** 2);
  const start = us - slope * per;
  const line =
    start >= 0
      ? { slope, start }
      : { slope: mean((point) => point.us * point.per) / mean((point) => point.per ** 2), start: 0 };
  return line.slope > 0 ? line : undefined;
}

/**
 * Lines through the CPU of a message against 1 / (messages for which a node wakes up once): the slope is to wake up, the start the message. By
 * the squares of relative errors, since a message costs twenty times as much at the lowest rate as at the highest.
 */
function messageCosts(rows: readonly ResultRow[], costs: KnownCosts): Found {
  const durable = rows.filter(({ labels }) => labels['delivery'] === 'durable');
  const points = (figure: 'cpuUsPerMessage' | 'cpuUsPerPublish', less: (rate: number) => number): Point[] =>
    durable.flatMap(({ figures, labels }) => {
      const rate = Number(labels['rate']);
      const us = (figures[figure] ?? 0) - less(rate);
      return us > 0 ? [{ us, per: wakesOf(rate) / rate, weight: 1 / us ** 2 }] : [];
    });
  // Each message has one subscriber, whose delivery is counted by itself.
  const delivery = costs.deliveryMessageUs.value + costs.deliveryWriteUs.value;
  const hosting = lineThrough(points('cpuUsPerMessage', () => delivery));
  const taking = lineThrough(points('cpuUsPerPublish', () => 0));
  const quiet = fromRows(rows, { nodeUsPerSec: 'quietCpuShare' }).nodeUsPerSec;
  return {
    ...(hosting === undefined ? {} : { messageUs: hosting.start, messageWakeUs: hosting.slope }),
    ...(taking === undefined ? {} : { publishFrameUs: taking.start, publishWakeUs: taking.slope }),
    ...(quiet === undefined ? {} : { nodeUsPerSec: quiet * 1e6 }),
  };
}

function idleCosts(result: BenchResult, costs: KnownCosts): Found {
  const [row] = clusterRows(result);
  if (row === undefined) return {};
  const { rssBytesPerSession, serverCpuShare, serverRssMb, sockets } = row.figures;
  if (sockets === undefined || rssBytesPerSession === undefined) return {};
  const further = Math.max(0, Number(row.labels['topics'] ?? 2) - 2) * costs.subscriptionBytes.value;
  const nodes = Number(row.labels['nodes'] ?? 1);
  return {
    sessionBytes: rssBytesPerSession - further,
    ...(serverCpuShare === undefined
      ? {}
      : {
          sessionUsPerSec: Math.max(0, serverCpuShare * 1e6 - nodes * costs.nodeUsPerSec.value) / sockets,
        }),
    ...(serverRssMb === undefined
      ? {}
      : { nodeBaseBytes: (serverRssMb * 1e6 - sockets * rssBytesPerSession) / nodes }),
  };
}

/** Of the most topics: what a process grows by at the first few is not theirs. */
function topicCosts(result: BenchResult): Found {
  const rows = clusterRows(result).filter(({ figures }) => figures.rssBytesPerTopic !== undefined);
  const most = rows.reduce<ResultRow | undefined>(
    (best, row) => (Number(row.labels['topics']) > Number(best?.labels['topics'] ?? 0) ? row : best),
    undefined,
  );
  return fromRows(most === undefined ? [] : [most], { hostedTopicBytes: 'rssBytesPerTopic' });
}

/** Of the most connections: a busy cluster is what is planned for. */
function pushCosts(rows: readonly ResultRow[]): Found {
  const most = Math.max(...rows.map(({ labels }) => Number(labels['connections'] ?? 0)));
  const busy = rows.filter(({ labels }) => Number(labels['connections'] ?? 0) === most);
  return fromRows(busy, { pushUs: 'cpuUsPerPush', redisPushUs: 'redisCpuUsPerPush' });
}

function publishCosts(rows: readonly ResultRow[]): Found {
  const of = (replicas: number, isBatch: boolean): ResultRow[] =>
    rows.filter(({ labels }) => labels['replicas'] === replicas && Number(labels['batch']) > 1 === isBatch);
  // The most copies that were measured: with them a node waits longer, which costs it nothing, so rows of one copy do as well.
  const replicas = rows.some(({ labels }) => labels['replicas'] === 3) ? 3 : 1;
  return {
    ...fromRows(of(replicas, false), { publishUs: 'cpuUsPerPublish' }),
    ...fromRows(of(replicas, true), { publishBatchedUs: 'cpuUsPerPublish' }),
    ...fromRows(of(1, false), { natsPublishUs: 'natsCpuUsPerPublish' }),
    ...fromRows(of(3, false), { natsPublishReplicatedUs: 'natsCpuUsPerPublish' }),
  };
}

function redisCosts(rows: readonly ResultRow[]): Found {
  const named = rows.filter(({ labels }) => labels['what'] === 'online user with a device name');
  return {
    ...fromRows(named, { redisUserBytes: 'redisBytesPerUser' }),
    ...fromRows(rows, { redisQueuedBytes: 'redisBytesPerQueued' }),
  };
}

function clusterRows({ rows }: BenchResult): readonly ResultRow[] {
  return rows.filter(({ labels }) => labels['engine'] === 'cluster');
}

/** The median of each figure over the rows that have it. */
function fromRows(rows: readonly ResultRow[], wanted: Partial<Record<CostName, FigureName>>): Found {
  const found: Found = {};
  for (const [cost, figure] of Object.entries(wanted) as [CostName, FigureName][]) {
    const values = rows.flatMap(({ figures }) => figures[figure] ?? []).sort((a, b) => a - b);
    const upper = values[values.length >> 1];
    if (upper === undefined) continue;
    found[cost] = values.length % 2 === 1 ? upper : ((values[(values.length >> 1) - 1] ?? upper) + upper) / 2;
  }
  return found;
}

function average(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
