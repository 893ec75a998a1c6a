import { figures, type Figure, type FigureName } from '../result/figures.js';
import { formatFigure } from '../result/table.js';
import type { Bar, Charts, LineSeries } from './chart.js';
import { latencyPoints } from './chart-lines.js';
import type { Html } from './markup.js';
import { growthLabel, rowName, seriesLabels, tellingLabels } from './naming.js';
import { groupBy, type ScenarioSummary, type Spread, type SummaryRow } from './summary.js';

interface ChartSpec {
  readonly title: string;
  /** Of one unit. */
  readonly figures: readonly FigureName[];
  /** Over sockets, topics … it is drawn as curves, else as bars; unless it is for one of them only. */
  readonly only?: 'curves' | 'bars';
  /** Its curves span decades. */
  readonly log?: true;
}

/** What is drawn of every scenario that has it, in this order; all else stands in the tables. */
const chartSpecs: readonly ChartSpec[] = [
  { title: 'Server CPU a delivery', figures: ['cpuUsPerDelivery'] },
  // As bars it stands beside those of the CPU.
  { title: 'CPU a delivery against bare µWS', figures: ['ratioToBare'], only: 'curves' },
  { title: 'Latency of the slowest hundredth', figures: ['p99Ms'], only: 'curves', log: true },
  { title: 'Latency', figures: ['p50Ms', 'p99Ms'], only: 'bars' },
  { title: 'Time', figures: ['seconds', 'idealSeconds'] },
  {
    title: 'Memory a session',
    figures: ['rssBytesPerSession', 'heapBytesPerSession'],
  },
  { title: 'Memory a socket', figures: ['rssBytesPerSocket'] },
  {
    title: 'Memory a hosted topic',
    figures: ['rssBytesPerTopic', 'heapBytesPerTopic'],
    log: true,
  },
  { title: 'Handshakes', figures: ['handshakesPerSec'] },
  { title: 'CPU a handshake', figures: ['cpuUsPerHandshake', 'redisCpuUsPerConnect'] },
  { title: 'Publishes', figures: ['publishesPerSec'] },
  { title: 'CPU a publish', figures: ['cpuUsPerPublish', 'natsCpuUsPerPublish'] },
  { title: 'Pushes', figures: ['pushesPerSec'] },
  { title: 'CPU a push', figures: ['cpuUsPerPush', 'redisCpuUsPerPush'] },
  { title: 'Messages of NATS', figures: ['natsInPerMessage', 'natsOutPerMessage'] },
  { title: 'JetStream reads', figures: ['jetStreamRequestsPerTopic'] },
  { title: 'Redis memory a user', figures: ['redisBytesPerUser'] },
  { title: 'Redis memory a queued push', figures: ['redisBytesPerQueued'] },
];

/** The charts of a scenario: latency curves first. Nothing is drawn of figures that the rows do not have, or of a single value. */
export function scenarioCharts({ rows, scenario }: ScenarioSummary, charts: Charts): Html[] {
  const colours = new Map<string, number>();
  const pen: Pen = {
    charts,
    scenario,
    colourOf(name) {
      const colour = colours.get(name) ?? colours.size;
      colours.set(name, colour);
      return colour;
    },
  };
  return [...latencyCharts(rows, pen), ...chartSpecs.flatMap((spec) => figureChart(rows, spec, pen) ?? [])];
}

interface Pen {
  readonly charts: Charts;
  readonly scenario: string;
  /** The same in all charts of the scenario. */
  readonly colourOf: (name: string) => number;
}

/** One chart for each size, because it is the servers that are compared, at the same size. */
function latencyCharts(all: readonly SummaryRow[], pen: Pen): Html[] {
  const rows = all.filter(({ latency = [] }) => latencyPoints(latency).length > 1);
  if (rows.length === 0) return [];
  const x = growthLabel(rows);
  if (x === undefined) return [latencyChart('Latency', rows, tellingLabels(rows), pen)];
  const sizes = [...groupBy(rows, ({ labels }) => Number(labels[x]))].sort(([a], [b]) => a - b);
  return sizes.map(([size, same]) =>
    latencyChart(`Latency, ${size.toLocaleString('en-US')} ${x}`, same, seriesLabels(rows, x), pen),
  );
}

function latencyChart(title: string, rows: readonly SummaryRow[], names: readonly string[], pen: Pen): Html {
  const curves = rows.map(({ labels, latency = [] }) => {
    const name = rowName(labels, names, pen.scenario);
    return { name, curve: latency, colour: pen.colourOf(name) };
  });
  return pen.charts.latency(title, curves, noteOf(['less is better', countNote(rows)]));
}

function figureChart(all: readonly SummaryRow[], spec: ChartSpec, pen: Pen): Html | undefined {
  const rows = all.filter((row) => spec.figures.some((name) => row.figures[name] !== undefined));
  const x = growthLabel(rows);
  if (x !== undefined) return spec.only === 'bars' ? undefined : curvesChart(rows, x, spec, pen);
  // Curves show the same and more.
  const drawn = spec.only === 'bars' && all.some(({ latency }) => latency !== undefined);
  return spec.only === 'curves' || drawn ? undefined : barsChart(rows, spec, pen);
}

function curvesChart(rows: readonly SummaryRow[], x: string, spec: ChartSpec, pen: Pen): Html {
  const names = seriesLabels(rows, x);
  const shown = spec.figures.filter((name) => rows.some((row) => row.figures[name] !== undefined));
  const series = shown.flatMap((figure): LineSeries[] =>
    [...groupBy(rows, ({ labels }) => rowName(labels, names, ''))].map(([rowsName, same]) => {
      const parts = shown.length === 1 ? [rowsName] : [figures[figure].title, rowsName];
      const name = parts.filter((part) => part !== '').join(', ') || pen.scenario;
      const points = same.flatMap((row) => {
        const value = row.figures[figure]?.median;
        return value === undefined ? [] : [[Number(row.labels[x]), value] as const];
      });
      return { name, points: points.sort((a, b) => a[0] - b[0]), colour: pen.colourOf(name) };
    }),
  );
  return pen.charts.lines({
    title: `${spec.title}, over ${x}`,
    note: noteOf([betterNote(shown), countNote(rows)]),
    x: { title: x, scale: 'log' },
    y: { title: unitOf(shown), scale: spec.log === true ? 'log' : 'linear' },
    series,
  });
}

function barsChart(
  rows: readonly SummaryRow[],
  spec: ChartSpec,
  { charts, scenario }: Pen,
): Html | undefined {
  const shown = spec.figures.filter((name) => rows.some((row) => row.figures[name] !== undefined));
  const names = tellingLabels(rows);
  const groups = rows.map((row) => ({
    name: rowName(row.labels, names, scenario),
    bars: shown.map((name) => barOf(row, name)),
  }));
  if (groups.length * shown.length < 2) return undefined;
  const compared =
    shown.includes('cpuUsPerDelivery') && rows.some((row) => row.figures.ratioToBare !== undefined);
  const ratio = compared ? '×: against bare µWS in the same round' : '';
  const ranged = rows.some(({ count }) => count > 1) ? 'thin line: least to greatest' : '';
  return charts.bars({
    title: spec.title,
    note: noteOf([betterNote(shown), ratio, countNote(rows), ranged]),
    groups,
    series: shown.map((name) => figures[name].title),
  });
}

function barOf({ figures: values }: SummaryRow, name: FigureName): Bar | undefined {
  const spread = values[name];
  if (spread === undefined) return undefined;
  const ratio = name === 'cpuUsPerDelivery' ? ratioText(values.ratioToBare) : '';
  const { unit }: Figure = figures[name];
  const text = `${formatFigure(name, spread.median)}${unit === '' ? '' : ` ${unit}`}${ratio}`;
  return {
    value: Math.max(0, spread.median),
    text,
    ...(spread.count > 1 ? { range: [Math.max(0, spread.min), Math.max(0, spread.max)] } : {}),
  };
}

function ratioText(ratio: Spread | undefined): string {
  return ratio === undefined ? '' : `, ${formatFigure('ratioToBare', ratio.median)} ×`;
}

/** A ratio has no unit, and is called by its name. */
function unitOf([first]: readonly FigureName[]): string {
  if (first === undefined) return '';
  const { title, unit }: Figure = figures[first];
  return unit === '' ? title : unit;
}

function betterNote([first]: readonly FigureName[]): string {
  if (first === undefined) return '';
  const { better }: Figure = figures[first];
  return better === undefined ? '' : `${better} is better`;
}

function countNote(rows: readonly SummaryRow[]): string {
  const most = Math.max(...rows.map(({ count }) => count));
  return most > 1 ? `medians of up to ${most} runs` : '';
}

function noteOf(parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join('; ');
}
