import type { FigureName } from '../result/figures.js';
import { parseResult, type BenchResult, type ResultRow } from '../result/result.js';
import type { KnownCosts } from './costs.js';
import { valuesOf } from './costs.js';
import { batchWindowMs, demandOf } from './demand.js';
import { inputSpecs, PlanInputError, readInputs, type InputName, type PlanInputs } from './inputs.js';
import { nodeLoad, type PlanModel } from './nodes.js';
import { simulateFanout } from './simulate-fanout.js';

export interface CheckedFigure {
  readonly figure: FigureName;
  readonly predicted: number;
  readonly measured: number;
  /** Predicted over measured, less 1; undefined when nothing was measured. */
  readonly error: number | undefined;
}

/** @throws PlanInputError unless it is the text of a sound result of `mixed` */
export function parseMixed(text: string): { readonly result: BenchResult; readonly row: ResultRow } {
  let result: BenchResult;
  try {
    result = parseResult(text);
  } catch (error) {
    throw new PlanInputError(error instanceof Error ? error.message : String(error));
  }
  const [row] = result.rows;
  if (result.scenario !== 'mixed') throw new PlanInputError(`the result of ${result.scenario}, not of mixed`);
  if (result.faults.length > 0) throw new PlanInputError(`the run has failed: ${result.faults.join('; ')}`);
  if (row === undefined) {
    throw new PlanInputError(`it has no row: ${result.doubts.join('; ') || 'no reason'}`);
  }
  return { result, row };
}

/** What a plan says of the very users, topics and messages of a run of `mixed`, and what was measured. @param seed of the simulation */
export function checkMixed(
  { result, row }: { readonly result: BenchResult; readonly row: ResultRow },
  known: KnownCosts,
  seed: number,
): CheckedFigure[] {
  const { settings } = result;
  const inputs = inputsOf(settings);
  const nodes = numberOf(settings, 'nodes');
  const predicted = predict(inputs, known, nodes, seed);
  return (Object.keys(predicted) as FigureName[]).flatMap((figure) => {
    const [mine, measured] = [predicted[figure], row.figures[figure]];
    if (mine === undefined || measured === undefined) return [];
    return [{ figure, predicted: mine, measured, error: measured === 0 ? undefined : mine / measured - 1 }];
  });
}

function predict(
  inputs: PlanInputs,
  known: KnownCosts,
  nodes: number,
  seed: number,
): Partial<Record<FigureName, number>> {
  const costs = valuesOf(known);
  const demand = demandOf(inputs, costs);
  const model: PlanModel = { inputs, costs, demand };
  // Everybody is there before the messages, and stays. One publisher sends to one node.
  const load = nodeLoad(model, nodes, 0);
  const taking = (published: number, publishRequests: number): number =>
    nodeLoad({ ...model, demand: { ...demand, published, publishRequests } }, nodes, 0).cpuShare;
  const cpu = (nodes - 1) * taking(0, 0) + taking(nodes * demand.published, nodes * demand.publishRequests);
  const simulated = simulateFanout(model, nodes, { seed, windowMs: batchWindowMs });
  const sessionBytes = (load.memoryBytes - load.ringBytes - costs.nodeBaseBytes) / load.sessions;
  return {
    sockets: demand.sessions,
    messagesPerSec: demand.messages,
    deliveriesPerSec: demand.deliveries,
    messagesPerRead: demand.batch,
    serverCpuShare: cpu,
    cpuUsPerDelivery: (cpu * 1e6) / demand.deliveries,
    rssBytesPerSession: sessionBytes,
    serverRssMb: (nodes * (costs.nodeBaseBytes + sessionBytes * load.sessions)) / 1e6,
    natsInPerMessage: 1,
    natsOutPerMessage: 1,
    redisCommandsPerMessage: 0,
    p50Ms: simulated.p50Ms,
    p99Ms: simulated.p99Ms,
  };
}

/** The run has nobody who comes, goes or is pushed to, and as many messages on each topic. */
function inputsOf(settings: BenchResult['settings']): PlanInputs {
  const given: Partial<Record<InputName, string>> = {
    users: text(settings, 'users'),
    topics: text(settings, 'topics'),
    topicsPerUser: text(settings, 'topicsPerUser'),
    zipf: text(settings, 'zipf'),
    messagesPerS: text(settings, 'rate'),
    bytes: text(settings, 'bytes'),
    codec: text(settings, 'codec'),
    durableShare: settings['delivery'] === 'live' ? '0' : '1',
    publishZipf: '0',
    publishVia: 'ws',
    pushesPerDay: '0',
    sessionMinutes: String(inputSpecs.sessionMinutes.fallback),
  };
  return readInputs(undefined, given).inputs;
}

function text(settings: BenchResult['settings'], name: string): string {
  const value = settings[name];
  if (value === undefined) throw new PlanInputError(`its settings lack ${name}`);
  return String(value);
}

function numberOf(settings: BenchResult['settings'], name: string): number {
  const value = Number(text(settings, name));
  if (Number.isInteger(value) && value > 0) return value;
  throw new PlanInputError(`its setting ${name} is no number of them`);
}
