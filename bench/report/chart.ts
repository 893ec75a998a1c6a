import type { EChartsCoreOption } from 'echarts/core';
import { barsHeight, barsOption, type BarChart } from './chart-bars.js';
import { latencyLines, linesHeight, linesOption, type LineChart, type Stroke } from './chart-lines.js';
import { html, trusted, type Html } from './markup.js';
import { drawingWidth, seriesColours } from './page-style.js';
import type { LatencyCurve } from '../result/result.js';

export type { Axis, Tick } from './axis.js';
export type { Bar, BarChart, BarGroup } from './chart-bars.js';
export type { LineChart, LineSeries, Point } from './chart-lines.js';

export interface NamedCurve {
  readonly name: string;
  readonly curve: LatencyCurve;
  /** As that of a line. */
  readonly colour?: number;
}

/** Draws charts as `<figure>` with an SVG, in the colours of `pageHtml`'s page. Text in them is escaped. */
export interface Charts {
  lines(chart: LineChart): Html;
  bars(chart: BarChart): Html;
  /** How long the fastest half, nine tenths, 99 % … of the messages took at most. */
  latency(title: string, curves: readonly NamedCurve[], note?: string): Html;
}

/** @throws Error that says how to install echarts when it is not */
export async function loadCharts(load = loadEcharts): Promise<Charts> {
  let draw: Draw;
  try {
    draw = await load();
  } catch (cause) {
    throw new Error(
      'charts are drawn by the optional package echarts, which cannot be loaded here: npm install echarts@6',
      { cause },
    );
  }
  const lines = (chart: LineChart): Html => {
    const strokes = chart.series.map(({ colour }, i) => strokeOf(colour ?? i));
    const keys = chart.series.map(({ name }, i) => ({ name, stroke: strokes[i] ?? strokeOf(i) }));
    return figure(chart, draw(linesOption(chart, strokes), linesHeight), keys);
  };
  return {
    lines,
    latency: (title, curves, note) => lines(latencyLines(title, curves, note)),
    bars(chart) {
      const colours = chart.series.map((_, i) => strokeOf(i).colour);
      const keys = chart.series.map((name, i) => ({
        name,
        stroke: { ...strokeOf(i), dash: 'solid' as const },
      }));
      return figure(chart, draw(barsOption(chart, colours), barsHeight(chart)), keys);
    },
  };
}

/** @returns an SVG element */
type Draw = (option: EChartsCoreOption, height: number) => string;

/** Only what is drawn is loaded, and only when something is drawn: it takes half a second. */
async function loadEcharts(): Promise<Draw> {
  const [{ init, use }, { BarChart, CustomChart, LineChart }, { GridComponent }, { SVGRenderer }] =
    await Promise.all([
      import('echarts/core'),
      import('echarts/charts'),
      import('echarts/components'),
      import('echarts/renderers'),
    ]);
  use([BarChart, CustomChart, LineChart, GridComponent, SVGRenderer]);
  return (option, height) => {
    const chart = init(null, undefined, { renderer: 'svg', ssr: true, width: drawingWidth, height });
    try {
      chart.setOption({ animation: false, textStyle: { fontFamily: 'system-ui, sans-serif' }, ...option });
      return plainSvg(chart.renderToSVGString());
    } finally {
      chart.dispose();
    }
  };
}

/** Without what is for the mouse: styles that make things light up, which a page without scripts has no use for. */
function plainSvg(svg: string): string {
  return svg
    .replace(/<style\b[\s\S]*?<\/style>/g, '')
    .replace(/ (?:class="zr[^"]*"|pointer-events="[^"]*"|ecmeta_\w+="[^"]*")/g, '');
}

const dashes: readonly Stroke['dash'][] = ['solid', [6, 4], [2, 3], [10, 3, 2, 3]];

function strokeOf(index: number): Stroke {
  const dash = dashes[Math.floor(index / seriesColours) % dashes.length] ?? 'solid';
  return { colour: `var(--c${(index % seriesColours) + 1})`, dash };
}

interface Key {
  readonly name: string;
  readonly stroke: Stroke;
}

function figure({ note, title }: { title: string; note?: string }, svg: string, keys: readonly Key[]): Html {
  // Read out as one picture: a screen reader would else read the numbers of the axes one by one.
  const picture = trusted(svg.replace('<svg ', `<svg ${html`role="img" aria-label="${title}"`.text} `));
  const subtitle = note === undefined ? undefined : html`<small>${note}</small>`;
  const key =
    keys.length < 2
      ? undefined
      : html`<ul class="key">
          ${keys.map(keyHtml)}
        </ul>`;
  return html`<figure>
    <figcaption>${title}${subtitle}</figcaption>
    ${picture} ${key}
  </figure> `;
}

/** The key is text of the page, so that it wraps whatever the number and the length of the names. */
function keyHtml({ name, stroke: { colour, dash } }: Key): Html {
  const pattern = dash === 'solid' ? undefined : html` stroke-dasharray="${dash.join(' ')}"`;
  return html`<li>
    <svg viewBox="0 0 24 10"><path d="M0 5h24" stroke="${colour}" stroke-width="4" ${pattern} /></svg>${name}
  </li>`;
}
