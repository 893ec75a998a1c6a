import { figureNames, type FigureName } from '../result/figures.js';
import type { BenchResult, LatencyCurve, Machine, ResultRow } from '../result/result.js';

export type Labels = ResultRow['labels'];

/** All runs of one scenario. */
export interface ScenarioSummary {
  readonly scenario: string;
  readonly runs: readonly BenchResult[];
  readonly rows: readonly SummaryRow[];
}

/** What was measured in the same way once or several times: rows of several runs, or of the rounds of one. */
export interface SummaryRow {
  /** Those of the row, and those settings in which the runs differ. */
  readonly labels: Labels;
  readonly figures: Readonly<Partial<Record<FigureName, Spread>>>;
  /** Of several: the median at each share. */
  readonly latency?: LatencyCurve;
  readonly count: number;
}

export interface Spread {
  readonly min: number;
  readonly median: number;
  readonly max: number;
  /** Of values that it was made of. */
  readonly count: number;
}

/** Scenarios in the order of their first runs, runs by time. */
export function summarise(results: readonly BenchResult[]): ScenarioSummary[] {
  const inTime = results.toSorted((a, b) =>
    a.startedAt < b.startedAt ? -1 : a.startedAt > b.startedAt ? 1 : 0,
  );
  return [...groupBy(inTime, ({ scenario }) => scenario)].map(([scenario, runs]) => ({
    scenario,
    runs,
    rows: summaryRows(runs),
  }));
}

/** The machine on which runs were made, short enough for a label. */
export function machineName({ cores, cpu }: Machine): string {
  return `${cpu}, ${cores} cores`;
}

function summaryRows(runs: readonly BenchResult[]): SummaryRow[] {
  const differing = differences(runs);
  const labelled = runs.flatMap((run) =>
    run.rows.map((row) => ({ row, labels: labelsOf(row, run, differing) })),
  );
  const same = groupBy(labelled, ({ labels }) => JSON.stringify(Object.entries(labels).sort()));
  return [...same.values()].flatMap((group) => {
    const [first] = group;
    return first === undefined
      ? []
      : [
          summaryRow(
            first.labels,
            group.map(({ row }) => row),
          ),
        ];
  });
}

function summaryRow(labels: Labels, rows: readonly ResultRow[]): SummaryRow {
  const spreads = figureNames.flatMap((name) => {
    const values = rows.flatMap(({ figures }) => figures[name] ?? []);
    return values.length === 0 ? [] : [[name, spreadOf(values)] as const];
  });
  const latency = medianCurve(rows.flatMap((row) => (row.latency === undefined ? [] : [row.latency])));
  return {
    labels,
    figures: Object.fromEntries(spreads),
    ...(latency.length === 0 ? {} : { latency }),
    count: rows.length,
  };
}

/** @param values one at least */
export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  return { min: sorted[0]!, median: medianOf(sorted), max: sorted.at(-1)!, count: sorted.length };
}

function medianOf(sorted: readonly number[]): number {
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Over the shares that all curves have. */
export function medianCurve(curves: readonly LatencyCurve[]): LatencyCurve {
  const [first = [], ...others] = curves.map((curve) => new Map(curve));
  return [...first].flatMap(([share, ms]) => {
    const more = others.flatMap((curve) => curve.get(share) ?? []);
    return more.length < others.length ? [] : [[share, spreadOf([ms, ...more]).median] as const];
  });
}

/** Runs that differ in one of these are still runs of the same: it says how long or how often, or which rows there are, or what came out. */
const notOfTheRow: ReadonlySet<string> = new Set([
  ...['rounds', 'seconds', 'warmUp', 'settle', 'idle', 'quiet', 'patience'],
  ...['sizes', 'subjects', 'batches', 'replicas', 'queued'],
  ...['peers', 'skipped', 'missed', 'handshakesAtLeast'],
  ...['jetStreamRequestsDuring', 'jetStreamRequestsQuiet', 'sessionsCut'],
]);

/** Rounds are runs of the same within a run. */
const repetition = 'round';

/** Settings in which the runs of a scenario differ and which no row has as a label; beside them the version and the machine. */
function differences(runs: readonly BenchResult[]): string[] {
  const labels = new Set(runs.flatMap(({ rows }) => rows.flatMap((row) => Object.keys(row.labels))));
  const names = new Set(runs.flatMap((run) => Object.keys(contextOf(run))));
  return [...names].filter(
    (name) => !labels.has(name) && new Set(runs.map((run) => contextOf(run)[name])).size > 1,
  );
}

function labelsOf(row: ResultRow, run: BenchResult, differing: readonly string[]): Labels {
  const context = contextOf(run);
  const own = Object.entries(row.labels).filter(([name]) => name !== repetition);
  const added = differing.flatMap((name) => {
    const value = context[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries([...own, ...added]);
}

function contextOf({ machine, settings, version }: BenchResult): Record<string, string | number> {
  const kept = Object.entries(settings)
    .filter(([name]) => !notOfTheRow.has(name))
    .map(([name, value]) => [name, typeof value === 'boolean' ? String(value) : value] as const);
  return { ...Object.fromEntries(kept), version, machine: machineName(machine) };
}

/** Groups in the order of their first members. */
export function groupBy<T, K>(all: readonly T[], keyOf: (one: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const one of all) {
    const key = keyOf(one);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [one]);
    else group.push(one);
  }
  return groups;
}
