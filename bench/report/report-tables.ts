import { figureNames, type FigureName } from '../result/figures.js';
import type { BenchResult } from '../result/result.js';
import { figureHead, formatFigure } from '../result/table.js';
import { html, type Html, type HtmlPart } from './markup.js';
import { labelNames } from './naming.js';
import { tableHtml } from './page.js';
import { machineName, type ScenarioSummary, type Spread, type SummaryRow } from './summary.js';

/** A line for each run: what, when, where, and whether it may be believed. */
export function runTable(runs: readonly BenchResult[]): Html {
  const rows = runs.map(({ doubts, faults, machine, scenario, startedAt, version, rows: { length } }) => [
    html`<a href="#${sectionId(scenario)}">${scenario}</a>`,
    timeText(startedAt),
    version,
    machineName(machine),
    length,
    faults.length === 0 ? '0' : html`<strong class="bad">${faults.length}</strong>`,
    doubts.length === 0 ? '0' : html`<strong class="warn">${doubts.length}</strong>`,
  ]);
  return tableHtml(['scenario', 'started', 'version', 'machine', 'rows', 'faults', 'doubts'], rows, 4);
}

export function sectionId(scenario: string): string {
  return `scenario-${scenario.replace(/[^\w-]/g, '-')}`;
}

/** All figures; where there are several values, the median above the least and the greatest. */
export function summaryTable({ rows }: ScenarioSummary): Html {
  const labels = labelNames(rows);
  const shown = figureNames.filter((name) =>
    rows.some((row) => saysMore(row.labels[name], row.figures[name]?.median)),
  );
  const repeated = rows.some(({ count }) => count > 1);
  const head = [...labels, ...(repeated ? ['runs'] : []), ...shown.map(figureHead)];
  const body = rows.map((row) => [
    ...labels.map((name) => labelText(row.labels[name])),
    ...(repeated ? [row.count] : []),
    ...shown.map((name) => spreadHtml(name, row)),
  ]);
  return tableHtml(head, body, labels.length);
}

/** Each row as it was measured, run by run. */
export function everyRowTable({ runs }: ScenarioSummary): Html {
  const rows = runs.flatMap((run) => run.rows.map((row) => ({ row, run })));
  const labels = [...new Set(rows.flatMap(({ row }) => Object.keys(row.labels)))];
  const shown = figureNames.filter((name) =>
    rows.some(({ row }) => saysMore(row.labels[name], row.figures[name])),
  );
  const body = rows.map(({ row, run }) => [
    timeText(run.startedAt),
    ...labels.map((name) => labelText(row.labels[name])),
    ...shown.map((name) => formatFigure(name, row.figures[name])),
  ]);
  return tableHtml(['started', ...labels, ...shown.map(figureHead)], body, labels.length + 1);
}

/** The options of the runs, one column for each run. */
export function settingsTable({ runs }: ScenarioSummary): Html {
  const names = [...new Set(runs.flatMap(({ settings }) => Object.keys(settings)))];
  const body = names.map((name) => [name, ...runs.map(({ settings }) => String(settings[name] ?? ''))]);
  return tableHtml(['setting', ...runs.map(({ startedAt }) => timeText(startedAt))], body, 1 + runs.length);
}

/** To the minute when it is a time, else as it is. */
export function timeText(startedAt: string): string {
  const time = Date.parse(startedAt);
  return Number.isNaN(time)
    ? startedAt
    : `${new Date(time).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

function labelText(value: string | number | undefined): string {
  return typeof value === 'number' ? value.toLocaleString('en-US') : (value ?? '');
}

function spreadHtml(name: FigureName, row: SummaryRow): HtmlPart {
  const spread: Spread | undefined = row.figures[name];
  if (spread === undefined) return '';
  const median = formatFigure(name, spread.median);
  const wrong = isCorrectness(name) && spread.max > 0;
  const shown = wrong ? html`<strong class="bad">${median}</strong>` : median;
  const [min, max] = [formatFigure(name, spread.min), formatFigure(name, spread.max)];
  return min === max ? shown : html`${shown}<small>${min} – ${max}</small>`;
}

/** A figure that only repeats the label of its name needs no column of its own. */
function saysMore(label: string | number | undefined, figure: number | undefined): boolean {
  return figure !== undefined && figure !== label;
}

function isCorrectness(name: FigureName): boolean {
  return name === 'lost' || name === 'doubled' || name === 'disorder';
}
