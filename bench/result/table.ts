import { figureNames, figures, type Figure, type FigureName } from './figures.js';
import type { ResultRow } from './result.js';

/** The rows as a Markdown table, one column for each label and figure that any of them has. */
export function resultTable(rows: readonly ResultRow[]): string {
  const labels = [...new Set(rows.flatMap((row) => Object.keys(row.labels)))];
  const shown = figureNames.filter((name) => rows.some((row) => row.figures[name] !== undefined));
  const head = [...labels, ...shown.map(figureHead)];
  const body = rows.map((row) => [
    ...labels.map((label) => String(row.labels[label] ?? '')),
    ...shown.map((name) => formatFigure(name, row.figures[name])),
  ]);
  return markdownTable(head, body, labels.length);
}

/** @returns the value with the digits that the figure is read with; '' for none */
export function formatFigure(name: FigureName, value: number | undefined): string {
  if (value === undefined) return '';
  const { digits, unit }: Figure = figures[name];
  const shown = unit === '%' ? value * 100 : value;
  return shown.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** Title and unit, as the head of a column. */
export function figureHead(name: FigureName): string {
  const { title, unit } = figures[name];
  return unit === '' ? title : `${title}, ${unit}`;
}

/** @param leftColumns so many of the first columns are aligned left, the others right */
export function markdownTable(
  head: readonly string[],
  body: readonly (readonly string[])[],
  leftColumns: number,
): string {
  const widths = head.map((title, i) => Math.max(title.length, ...body.map((row) => row[i]?.length ?? 0), 3));
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, i) => (i < leftColumns ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join(' | ')} |`;
  const rule = `|${widths.map((width, i) => (i < leftColumns ? '-'.repeat(width + 2) : `${'-'.repeat(width + 1)}:`)).join('|')}|`;
  return [line(head), rule, ...body.map(line)].join('\n');
}
