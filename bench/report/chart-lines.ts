import type { EChartsCoreOption } from 'echarts/core';
import type { LatencyCurve } from '../result/result.js';
import { logTicks, shortNumber, type Axis, type Tick } from './axis.js';

export interface LineChart {
  readonly title: string;
  /** A second, quieter line of the title. */
  readonly note?: string;
  readonly x: Axis;
  readonly y: Axis;
  readonly series: readonly LineSeries[];
}

export interface LineSeries {
  readonly name: string;
  /** Ascending by x. */
  readonly points: readonly Point[];
  /** Which colour, so that the same thing looks the same in several charts; its place in the list unless given. */
  readonly colour?: number;
  /** Draws no marks on the points. */
  readonly smoothed?: boolean;
}

export type Point = readonly [x: number, y: number];

export const linesHeight = 300;

export interface Stroke {
  readonly colour: string;
  readonly dash: readonly number[] | 'solid';
}

export function linesOption({ series, x, y }: LineChart, strokes: readonly Stroke[]): EChartsCoreOption {
  const drawn = series.map(({ points }) =>
    points.filter(
      (point) => (x.scale === 'linear' || point[0] > 0) && (y.scale === 'linear' || point[1] > 0),
    ),
  );
  const all = drawn.flat();
  return {
    // echarts draws the title of a vertical axis centred over its end: the room is for the half that stands left of it.
    grid: { left: 52, right: 22, top: 30, bottom: 44 },
    xAxis: {
      ...axisOption(
        x,
        all.map((point) => point[0]),
      ),
      name: x.title,
      nameLocation: 'middle',
      nameGap: 28,
    },
    yAxis: {
      ...axisOption(
        y,
        all.map((point) => point[1]),
      ),
      name: y.title,
      nameLocation: 'end',
      nameGap: 12,
      nameTextStyle: { align: 'left', padding: [0, 0, 0, -48], color: 'var(--muted)', fontSize: 12 },
    },
    series: series.map(({ smoothed = false }, i) => ({
      type: 'line',
      silent: true,
      clip: false,
      symbol: smoothed ? 'none' : 'circle',
      symbolSize: 6,
      itemStyle: { color: strokes[i]?.colour },
      lineStyle: { color: strokes[i]?.colour, width: 2, type: strokes[i]?.dash },
      data: (drawn[i] ?? []).map((point) => [placeOn(x, point[0]), placeOn(y, point[1])]),
    })),
  };
}

/** Share of messages, its far end drawn out, against the time that they took at most. Curves without two points are left out. */
export function latencyLines(
  title: string,
  curves: readonly { readonly name: string; readonly curve: LatencyCurve; readonly colour?: number }[],
  note?: string,
): LineChart {
  const series = curves.flatMap(({ curve, name, colour }, i) => {
    const points = latencyPoints(curve);
    return points.length < 2 ? [] : [{ name, colour: colour ?? i, smoothed: true, points }];
  });
  return {
    title,
    ...(note === undefined ? {} : { note }),
    x: { title: 'share of messages', scale: 'log', ticks: shareTicks },
    y: { title: 'ms or less', scale: 'log' },
    series,
  };
}

/** All of the messages (share 1) would be infinitely far; the slowest of all stands in the tables. */
export function latencyPoints(curve: LatencyCurve): Point[] {
  return curve.filter(([share, ms]) => share < 1 && ms > 0).map(([share, ms]) => [1 / (1 - share), ms]);
}

const shareTicks: readonly Tick[] = [0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999].map((share) => ({
  at: 1 / (1 - share),
  text: `${Number((share * 100).toPrecision(7))}%`,
}));

/** echarts' own log axis begins and ends at whole decades, which can leave half of the chart empty: logarithms on a linear axis do not. */
function axisOption(axis: Axis, values: readonly number[]): Record<string, unknown> {
  const common = {
    type: 'value',
    axisLine: { show: true, onZero: false, lineStyle: { color: 'var(--muted)' } },
    axisTick: { show: false },
    splitLine: { show: true, lineStyle: { color: 'var(--line)' } },
    axisLabel: { color: 'var(--muted)', fontSize: 12, formatter: shortNumber, hideOverlap: true },
    nameTextStyle: { color: 'var(--muted)', fontSize: 12 },
  };
  if (axis.scale === 'linear' || values.length === 0) return common;
  const ticks = axis.ticks ?? logTicks(values);
  const places = ticks.map(({ at }) => Math.log10(at));
  const own = values.map((value) => Math.log10(value));
  const [min, max] =
    axis.ticks === undefined ? [places.at(0), places.at(-1)] : [Math.min(...own), Math.max(...own)];
  const customValues = places.filter((place) => place >= (min ?? 0) && place <= (max ?? 0) + 1e-9);
  const texts = new Map(ticks.map(({ at, text }) => [Math.log10(at), text]));
  const formatter = (place: number): string => texts.get(place) ?? '';
  return {
    ...common,
    min,
    max,
    axisTick: { show: false, customValues },
    splitLine: { ...common.splitLine, customValues },
    axisLabel: { ...common.axisLabel, customValues, formatter },
  };
}

function placeOn({ scale }: Axis, value: number): number {
  return scale === 'log' ? Math.log10(value) : value;
}
