import type { EChartsCoreOption } from 'echarts/core';
import { drawingWidth } from './page-style.js';

export interface BarChart {
  readonly title: string;
  /** A second, quieter line of the title. */
  readonly note?: string;
  /** From top to bottom. */
  readonly groups: readonly BarGroup[];
  /** Of the bars in each group; a single one has no key. */
  readonly series: readonly string[];
  /** Laid end to end, so that a group shows a sum; else below each other. */
  readonly stacked?: boolean;
}

export interface BarGroup {
  readonly name: string;
  /** One for each series, in the same order; undefined: none. */
  readonly bars: readonly (Bar | undefined)[];
}

export interface Bar {
  /** 0 or more. */
  readonly value: number;
  /** Stands behind the bar, or within it when stacked: the value as people read it. */
  readonly text: string;
  /** Least and greatest, drawn as a thin line. */
  readonly range?: readonly [min: number, max: number];
}

const barHeight = 13;
/** Between the bars of a group, as a share of their height. */
const barGap = 0.25;
const barStep = barHeight * (1 + barGap);
const stackHeight = 22;
const groupGap = 14;
const nameWidthMax = 130;
const nameLinesMax = 4;
const lineHeight = 13;
/** About that of a character: there is no font here to measure with. */
const charWidth = 7;

/** Of the drawing. */
export function barsHeight({ groups, series, stacked = false }: BarChart): number {
  const lines = Math.max(1, ...groups.map(({ name }) => nameLines(name).length));
  const group = Math.max(
    stacked ? stackHeight : 26,
    lines * lineHeight,
    stacked ? 0 : series.length * barStep,
  );
  return Math.ceil(groups.length * (group + groupGap)) + 12;
}

/** @param colours one for each series */
export function barsOption(chart: BarChart, colours: readonly string[]): EChartsCoreOption {
  const { groups, series, stacked = false } = chart;
  const room = roomOf(chart);
  return {
    grid: { left: room.left, right: room.right, top: 4, bottom: 8 },
    xAxis: { type: 'value', min: 0, max: room.longest, show: false },
    yAxis: {
      type: 'category',
      inverse: true,
      data: groups.map(({ name }) => nameLines(name).join('\n')),
      axisTick: { show: false },
      axisLine: { lineStyle: { color: 'var(--muted)' } },
      axisLabel: { interval: 0, color: 'var(--ink)', fontSize: 12, lineHeight },
    },
    series: [
      ...series.map((_, i) => barSeries(chart, i, colours[i], room)),
      ...(stacked ? [] : rangeSeries(chart)),
    ],
  };
}

/** Broken between words; a word that is longer than a line is broken too, and what does not fit the last line is left out. */
export function nameLines(name: string): string[] {
  const most = Math.floor(nameWidthMax / charWidth);
  const words = name.split(/\s+/).flatMap((word) => word.match(new RegExp(`.{1,${most}}`, 'gu')) ?? []);
  const lines: string[] = [];
  for (const word of words) {
    const longer = lines.length === 0 ? word : `${lines.at(-1)} ${word}`;
    if (lines.length > 0 && longer.length <= most) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  if (lines.length <= nameLinesMax) return lines;
  return [...lines.slice(0, nameLinesMax - 1), `${(lines[nameLinesMax - 1] ?? '').slice(0, most - 2)} …`];
}

interface Room {
  readonly left: number;
  readonly right: number;
  /** What the longest bar stands for; 1 when all are 0. */
  readonly longest: number;
  /** Of the drawing's width, for 1. */
  readonly scale: number;
}

function roomOf({ groups, stacked = false }: BarChart): Room {
  const lengths = groups.map(({ bars }) =>
    stacked
      ? bars.reduce((sum, bar) => sum + (bar?.value ?? 0), 0)
      : Math.max(0, ...bars.map((bar) => Math.max(bar?.value ?? 0, bar?.range?.[1] ?? 0))),
  );
  const longest = Math.max(0, ...lengths) || 1;
  const longestName = Math.max(
    0,
    ...groups.flatMap(({ name }) => nameLines(name).map((line) => line.length)),
  );
  const longestText = Math.max(0, ...groups.flatMap(({ bars }) => bars.map((bar) => bar?.text.length ?? 0)));
  const left = Math.min(nameWidthMax, Math.ceil(longestName * charWidth) + 4) + 8;
  const right = stacked ? 16 : Math.ceil(longestText * charWidth) + 10;
  return { left, right, longest, scale: (drawingWidth - left - right) / longest };
}

function barSeries(chart: BarChart, index: number, color: string | undefined, { scale }: Room): object {
  const { groups, stacked = false } = chart;
  return {
    type: 'bar',
    silent: true,
    ...(stacked ? { stack: 'all' } : {}),
    barWidth: stacked ? stackHeight : barHeight,
    barGap: `${barGap * 100}%`,
    itemStyle: { color },
    data: groups.map(({ bars }) => {
      const bar = bars[index];
      if (bar === undefined) return { value: 0, label: { show: false } };
      return { value: bar.value, label: stacked ? insideLabel(bar, scale) : endLabel(bar, scale) };
    }),
  };
}

/** A bar that is too short for its text goes without: the tables have it. */
function insideLabel({ text, value }: Bar, scale: number): object {
  const show = value * scale > text.length * charWidth;
  return { show, position: 'inside', formatter: literal(text), fontSize: 12, color: 'var(--bg)' };
}

/** Behind the end of the range too, or its line would strike the text through. */
function endLabel({ range, text, value }: Bar, scale: number): object {
  const distance = 5 + Math.max(0, ((range?.[1] ?? value) - value) * scale);
  return {
    show: true,
    position: 'right',
    distance,
    formatter: literal(text),
    fontSize: 12,
    color: 'var(--ink)',
  };
}

/** As a function, because `{b}` in a text would be filled in. */
function literal(text: string): () => string {
  return () => text;
}

interface RangeApi {
  value(dimension: number): number;
  coord(point: readonly [number, number]): [number, number];
}

/** Thin lines over the bars. */
function rangeSeries({ groups, series }: BarChart): object[] {
  const ranges = groups.flatMap(({ bars }, group) =>
    bars.flatMap((bar, i) => (bar?.range === undefined ? [] : [[...bar.range, group, i]])),
  );
  if (ranges.length === 0) return [];
  const renderItem = (_: unknown, api: RangeApi): object => {
    const [x1, middle] = api.coord([api.value(0), api.value(2)]);
    const [x2] = api.coord([api.value(1), api.value(2)]);
    const y = middle + (api.value(3) - (series.length - 1) / 2) * barStep;
    const line = (fromX: number, fromY: number, toX: number, toY: number): object => ({
      type: 'line',
      shape: { x1: fromX, y1: fromY, x2: toX, y2: toY },
      style: { stroke: 'var(--ink)', lineWidth: 1.5 },
    });
    return {
      type: 'group',
      children: [line(x1, y, x2, y), line(x1, y - 4, x1, y + 4), line(x2, y - 4, x2, y + 4)],
    };
  };
  return [{ type: 'custom', silent: true, z: 3, data: ranges, encode: { x: [0, 1], y: 2 }, renderItem }];
}
