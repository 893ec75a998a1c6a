import type { EChartsCoreOption } from 'echarts/core';

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
  /** From 0. */
  readonly value: number;
  /** Stands behind the bar, or within it when stacked: the value as people read it. */
  readonly text: string;
  /** Least and greatest, drawn as a thin line. */
  readonly range?: readonly [min: number, max: number];
}

const barHeight = 17;
const groupGap = 14;
const nameWidth = 140;
/** About the width of a character, at the size of the text. */
const charWidth = 6.6;

export function barsHeight({ groups, series, stacked }: BarChart): number {
  return groups.length * (groupHeight(series.length, stacked) + groupGap) + 24;
}

function groupHeight(series: number, stacked = false): number {
  return Math.max(26, (stacked ? 1 : series) * barHeight);
}

export function barsOption(chart: BarChart, colours: readonly string[]): EChartsCoreOption {
  const { groups, series, stacked = false } = chart;
  const bars = groups.flatMap((group) => group.bars.flatMap((bar) => bar ?? []));
  const longestText = Math.max(0, ...bars.map(({ text }) => text.length));
  const longestName = Math.max(0, ...groups.map(({ name }) => name.length));
  const left = Math.min(nameWidth, Math.ceil(longestName * charWidth) + 4) + 8;
  return {
    grid: { left, right: stacked ? 16 : Math.ceil(longestText * charWidth) + 14, top: 4, bottom: 20 },
    xAxis: {
      type: 'value',
      min: 0,
      max: longest(chart),
      axisLabel: { show: false },
      splitLine: { show: false },
      axisLine: { show: false },
      axisTick: { show: false },
    },
    yAxis: {
      type: 'category',
      inverse: true,
      data: groups.map(({ name }) => name),
      axisTick: { show: false },
      axisLine: { lineStyle: { color: 'var(--muted)' } },
      axisLabel: {
        interval: 0,
        color: 'var(--ink)',
        fontSize: 12,
        lineHeight: 13,
        width: left - 8,
        overflow: 'break',
      },
    },
    series: [
      ...series.map((_, i) => barSeries(chart, i, colours[i % colours.length] ?? 'var(--ink)')),
      ...(stacked ? [] : rangeSeries(chart)),
    ],
  };
}

/** Of what is drawn; 1 when that is nothing. */
function longest({ groups, stacked = false }: BarChart): number {
  const lengths = groups.map(({ bars }) => {
    const ends = bars.map((bar) => Math.max(bar?.value ?? 0, bar?.range?.[1] ?? 0));
    return stacked ? bars.reduce((sum, bar) => sum + (bar?.value ?? 0), 0) : Math.max(0, ...ends);
  });
  return Math.max(0, ...lengths) || 1;
}

function barSeries({ groups, series, stacked = false }: BarChart, index: number, colour: string): object {
  const share = longest({ title: '', groups, series, stacked });
  return {
    type: 'bar',
    silent: true,
    ...(stacked ? { stack: 'all' } : {}),
    barWidth: stacked ? 22 : barHeight - 4,
    barGap: '25%',
    itemStyle: { color: colour },
    data: groups.map(({ bars }) => {
      const bar = bars[index];
      if (bar === undefined) return { value: 0, label: { show: false } };
      // A stacked bar that is too short for its text goes without: the key and the tables have it.
      const fits = !stacked || (bar.value / share) * 260 > bar.text.length * charWidth;
      const color = stacked ? 'var(--bg)' : 'var(--ink)';
      const label = {
        show: fits,
        position: stacked ? 'inside' : 'right',
        formatter: literal(bar.text),
        fontSize: 12,
        color,
      };
      // Behind the end of its range, or the line would strike the text through.
      const distance =
        bar.range === undefined ? 5 : 5 + Math.max(0, ((bar.range[1] - bar.value) / share) * 260);
      return { value: bar.value, label: { ...label, distance } };
    }),
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
  const step = barHeight - 4 + (barHeight - 4) / 4;
  return [
    {
      type: 'custom',
      silent: true,
      z: 3,
      data: ranges,
      encode: { x: [0, 1], y: 2 },
      renderItem(_: unknown, api: RangeApi) {
        const group = api.value(2);
        const [x1, middle] = api.coord([api.value(0), group]);
        const [x2] = api.coord([api.value(1), group]);
        const y = middle + (api.value(3) - (series.length - 1) / 2) * step;
        const stroke = (from: readonly [number, number], to: readonly [number, number]): object => ({
          type: 'line',
          shape: { x1: from[0], y1: from[1], x2: to[0], y2: to[1] },
          style: { stroke: 'var(--ink)', lineWidth: 1.5 },
        });
        const ends = [x1, x2].map((x) => stroke([x, y - 4], [x, y + 4]));
        return { type: 'group', children: [stroke([x1, y], [x2, y]), ...ends] };
      },
    },
  ];
}
