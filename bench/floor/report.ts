import type { RunResult } from './run.js';

export interface Summary {
  readonly subject: RunResult['subject'];
  /** Medians over the runs. */
  readonly cpuUsPerDelivery: number;
  /** Against the bare server of the same round: median, least, greatest. */
  readonly ratio: number;
  readonly ratioMin: number;
  readonly ratioMax: number;
  readonly messagesPerRead: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** A client this busy may have been what held things up. */
const clientShareMax = 0.8;

/** What is wrong with a run, in words; empty when it may be believed. */
export function faultsOf(run: RunResult): string[] {
  const faults: string[] = [];
  if (run.deliveries !== run.expected) faults.push(`${run.deliveries} deliveries instead of ${run.expected}`);
  if (run.disorder > 0) faults.push(`${run.disorder} messages out of order`);
  if (run.refused.length > 0) {
    faults.push(`${run.refused.length} refused, the first: ${run.refused[0] ?? ''}`);
  }
  if (run.clientCpuShareMax > clientShareMax) {
    faults.push(
      `a client process used ${percent(run.clientCpuShareMax)} of a core and may have been the bottleneck`,
    );
  }
  return faults.map((fault) => `${run.subject}: ${fault}`);
}

/** Whether each message reached the probes on its own, in every run of a round. */
export function isQuiet(round: readonly RunResult[], messagesPerReadMax: number): boolean {
  return round.every((run) => run.messagesPerRead <= messagesPerReadMax);
}

/** @param rounds each with a run of every subject */
export function summarise(rounds: readonly (readonly RunResult[])[]): Summary[] {
  const names = [...new Set(rounds.flat().map((run) => run.subject))];
  return names.map((subject) => {
    const runs = rounds.flatMap((round) => round.filter((run) => run.subject === subject));
    const ratios = rounds.flatMap((round) => {
      const own = round.find((run) => run.subject === subject);
      const floor = round.find((run) => run.subject === 'bare');
      return own === undefined || floor === undefined ? [] : [own.cpuUsPerDelivery / floor.cpuUsPerDelivery];
    });
    return {
      subject,
      cpuUsPerDelivery: median(runs.map((run) => run.cpuUsPerDelivery)),
      ratio: median(ratios),
      ratioMin: Math.min(...ratios),
      ratioMax: Math.max(...ratios),
      messagesPerRead: median(runs.map((run) => run.messagesPerRead)),
      p50Ms: median(runs.map((run) => run.p50Ms)),
      p99Ms: median(runs.map((run) => run.p99Ms)),
    };
  });
}

const columns = [
  'subject',
  'deliveries',
  'server CPU',
  'µs/delivery',
  'a read',
  'p50 ms',
  'p99 ms',
  'max ms',
  'clients CPU',
  'busiest',
];

export function headLine(): string {
  return line(columns);
}

export function runLine(run: RunResult): string {
  return line([
    run.subject,
    run.deliveries === run.expected ? String(run.deliveries) : `${run.deliveries}/${run.expected}`,
    percent(run.serverCpuSec / run.seconds),
    run.cpuUsPerDelivery.toFixed(2),
    run.messagesPerRead.toFixed(2),
    run.p50Ms.toFixed(2),
    run.p99Ms.toFixed(2),
    run.maxMs.toFixed(2),
    percent(run.clientCpuSec / run.seconds),
    percent(run.clientCpuShareMax),
  ]);
}

export function summaryTable(summaries: readonly Summary[]): string {
  const head =
    '| subject | CPU µs a delivery | against bare (range) | messages a read | p50 ms | p99 ms |\n|---|---|---|---|---|---|';
  const rows = summaries.map((of) => {
    const range = `${of.ratio.toFixed(2)} (${of.ratioMin.toFixed(2)}–${of.ratioMax.toFixed(2)})`;
    const cells = [of.cpuUsPerDelivery, range, of.messagesPerRead, of.p50Ms, of.p99Ms];
    return `| ${[of.subject, ...cells.map((c) => (typeof c === 'number' ? c.toFixed(2) : c))].join(' | ')} |`;
  });
  return [head, ...rows].join('\n');
}

function line(cells: readonly string[]): string {
  return cells
    .map((cell, i) => cell.padEnd(Math.max(13, columns[i]?.length ?? 0)))
    .join(' ')
    .trimEnd();
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? NaN) + upper) / 2;
}
