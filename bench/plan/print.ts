import { figures, type Figure } from '../result/figures.js';
import { figureHead, formatFigure, markdownTable } from '../result/table.js';
import type { CheckedFigure } from './check.js';
import { costNames, costSpecs, sourceOf, type KnownCosts } from './costs.js';
import type { GivenInputs } from './inputs.js';
import type { Plan } from './plan.js';
import { inputRows, planRows, shown } from './rows.js';
import type { Simulation } from './simulate.js';
import type { FanoutSimulation } from './simulate-fanout.js';
import { whatIfColumns, type WhatIf } from './what-if.js';

/** A table with a title, for the terminal and for the page. */
export interface PlanTable {
  readonly title: string;
  readonly head: readonly string[];
  readonly body: readonly (readonly string[])[];
  /** So many of the first columns are text. */
  readonly leftColumns: number;
}

export function planTables(plan: Plan): PlanTable[] {
  const rows = planRows(plan);
  return [...new Set(rows.map(({ part }) => part))].map((part) => ({
    title: part,
    head: [part, '', 'note'],
    body: rows.filter((row) => row.part === part).map((row) => [row.title, shown(row), row.note]),
    leftColumns: 1,
  }));
}

export function inputTable(given: GivenInputs): PlanTable {
  return {
    title: 'inputs',
    head: ['input', 'value', 'from', 'what'],
    body: inputRows(given),
    leftColumns: 4,
  };
}

export function costTable(costs: KnownCosts): PlanTable {
  const body = costNames.map((name) => [
    name,
    String(costs[name].value),
    costSpecs[name],
    sourceOf(costs[name]),
  ]);
  return { title: 'costs', head: ['cost', 'value', 'what', 'why'], body, leftColumns: 4 };
}

export function simulationTables({ fanout, fanoutAfterLoss, seed, storm }: Simulation): PlanTable[] {
  const ms = (value: number): string => `${value.toFixed(2)} ms`;
  const cells: readonly (readonly [string, (of: FanoutSimulation) => string])[] = [
    ['p50, from arrival at the node to the write', (of) => ms(of.p50Ms)],
    ['p99', (of) => ms(of.p99Ms)],
    ['p99.9', (of) => ms(of.p999Ms)],
    ['messages that leave together', (of) => of.messagesPerFlush.toFixed(2)],
    ['CPU of the node', (of) => `${(of.cpuShare * 100).toFixed(1)} %`],
    ['messages simulated', (of) => of.messages.toLocaleString('en-US')],
  ];
  return [
    {
      title: `fan-out, simulated with seed ${seed}`,
      head: [`fan-out, seed ${seed}`, 'all nodes', 'after a loss'],
      body: cells.map(([title, value]) => [title, value(fanout), value(fanoutAfterLoss)]),
      leftColumns: 1,
    },
    {
      title: `storm, simulated with seed ${seed}`,
      head: [`storm, seed ${seed}`, ''],
      body:
        storm === undefined
          ? [['all are back', 'not within a week: the admission rate is used up by those who come and go']]
          : [
              ['half are back', `${storm.p50Sec.toFixed(1)} s`],
              ['90 % are back', `${storm.p90Sec.toFixed(1)} s`],
              ['99 % are back', `${storm.p99Sec.toFixed(1)} s`],
              ['all are back', `${storm.allSec.toFixed(1)} s`],
              ['times told to come later', storm.refusals.toLocaleString('en-US')],
              ['most tries a second', Math.round(storm.triesPerSecMax).toLocaleString('en-US')],
              ['free admission rate that was used', `${(storm.used * 100).toFixed(0)} %`],
              ['step', `${(storm.stepSec * 1000).toFixed(0)} ms`],
            ],
      leftColumns: 1,
    },
  ];
}

export function whatIfTable({ input, steps }: WhatIf): PlanTable {
  const titles = new Map(
    steps.flatMap(({ rows }) => rows.map((row) => [row.key, `${row.part}: ${row.title}`] as const)),
  );
  return {
    title: `what if ${input}`,
    head: [input, ...whatIfColumns.map((key) => titles.get(key) ?? key)],
    body: steps.map(({ fault, rows, value }) => [
      value.toLocaleString('en-US', { maximumFractionDigits: 4 }),
      ...(fault === undefined
        ? whatIfColumns.map((key) => {
            const row = rows.find((one) => one.key === key);
            return row === undefined ? '' : shown(row);
          })
        : [`impossible`]),
    ]),
    leftColumns: 0,
  };
}

export function checkTable(checked: readonly CheckedFigure[]): PlanTable {
  return {
    title: 'predicted and measured',
    head: ['figure', 'predicted', 'measured', 'error'],
    body: checked.map(({ error, figure, measured, predicted }) => {
      const { digits }: Figure = figures[figure];
      const same = predicted.toFixed(digits) === measured.toFixed(digits);
      const percent =
        error === undefined ? (same ? 'none' : '') : `${error > 0 ? '+' : ''}${(error * 100).toFixed(1)} %`;
      return [figureHead(figure), formatFigure(figure, predicted), formatFigure(figure, measured), percent];
    }),
    leftColumns: 1,
  };
}

export function textOf({ body, head, leftColumns }: PlanTable): string {
  return markdownTable(head, body, leftColumns);
}
