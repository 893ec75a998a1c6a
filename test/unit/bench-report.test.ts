import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { logTicks, shortNumber } from '../../bench/report/axis.js';
import { loadCharts } from '../../bench/report/chart.js';
import { NotAResult, runReport } from '../../bench/report/command.js';
import { html } from '../../bench/report/markup.js';
import { growthLabel, rowName, seriesLabels, tellingLabels } from '../../bench/report/naming.js';
import { seriesColours } from '../../bench/report/page-style.js';
import { reportHtml } from '../../bench/report/report.js';
import { medianCurve, spreadOf, summarise } from '../../bench/report/summary.js';
import type { BenchResult, LatencyCurve, ResultRow } from '../../bench/result/result.js';

const machine = { cpu: 'Test CPU', cores: 2, memoryBytes: 2 ** 34, os: 'Linux', node: 'v20.0.0' };

function resultOf(
  scenario: string,
  rows: readonly ResultRow[],
  other: Partial<BenchResult> = {},
): BenchResult {
  return {
    format: 1,
    scenario,
    startedAt: '2026-01-02T03:04:05.000Z',
    version: '0.1.0',
    machine,
    settings: {},
    rows,
    faults: [],
    doubts: [],
    ...other,
  };
}

function idle(bytes: number, minute: number, settings: BenchResult['settings'] = {}): BenchResult {
  const row = { labels: { engine: 'cluster' }, figures: { rssBytesPerSession: bytes } };
  return resultOf('idle', [row], { settings, startedAt: `2026-01-02T03:0${minute}:00.000Z` });
}

function fanout(
  subject: string,
  sockets: number,
  cpuUsPerDelivery: number,
  latency?: LatencyCurve,
): ResultRow {
  return {
    labels: { subject, sockets, rate: 40_000 / sockets },
    figures: { sockets, cpuUsPerDelivery, ratioToBare: cpuUsPerDelivery / 4, p99Ms: 12.5 },
    ...(latency === undefined ? {} : { latency }),
  };
}

/** Titles of the charts of a page, in order. */
function chartTitles(page: string): string[] {
  return [...page.matchAll(/<figcaption>(.*?)<(?:small|\/figcaption)>/g)].map((found) => found[1] ?? '');
}

describe('summary of runs', () => {
  test('runs of the same become one row with least, median and greatest', () => {
    const [summary, ...others] = summarise([idle(30, 2), idle(10, 1), idle(20, 3)]);
    expect(others).toEqual([]);
    expect(summary?.rows).toEqual([
      {
        labels: { engine: 'cluster' },
        figures: { rssBytesPerSession: { min: 10, median: 20, max: 30, count: 3 } },
        count: 3,
      },
    ]);
    expect(summary?.runs.map(({ startedAt }) => startedAt.slice(14, 16))).toEqual(['01', '02', '03']);
  });

  test('runs with different settings stay apart and say in what they differ', () => {
    const [summary] = summarise([
      idle(10, 1, { sockets: 100, codec: 'json' }),
      idle(20, 2, { sockets: 200, codec: 'json' }),
    ]);
    expect(summary?.rows.map(({ labels }) => labels)).toEqual([
      { engine: 'cluster', sockets: 100 },
      { engine: 'cluster', sockets: 200 },
    ]);
  });

  test('runs of different versions and machines stay apart', () => {
    const versions = summarise([idle(10, 1), { ...idle(20, 2), version: '0.2.0' }]);
    expect(versions[0]?.rows.map(({ labels }) => labels['version'])).toEqual(['0.1.0', '0.2.0']);
    const machines = summarise([idle(10, 1), { ...idle(20, 2), machine: { ...machine, cores: 8 } }]);
    expect(machines[0]?.rows).toHaveLength(2);
  });

  test('how long and how often was measured does not keep runs apart, and neither do rounds', () => {
    const seconds = summarise([idle(10, 1, { seconds: 5 }), idle(20, 2, { seconds: 10 })]);
    expect(seconds[0]?.rows).toHaveLength(1);
    const rounds = [1, 2, 3].map((round) => ({
      labels: { codec: 'json', round },
      figures: { handshakesPerSec: round },
    }));
    expect(summarise([resultOf('connect', rounds)])[0]?.rows).toMatchObject([
      { labels: { codec: 'json' }, count: 3 },
    ]);
  });

  test('median of an even number of values lies between the two in the middle', () => {
    expect(spreadOf([4, 1, 3, 2])).toEqual({ min: 1, median: 2.5, max: 4, count: 4 });
  });

  test('curves are put together at the shares that all have', () => {
    expect(
      medianCurve([
        [
          [0.5, 1],
          [0.9, 5],
        ],
        [
          [0.5, 3],
          [0.99, 9],
        ],
        [[0.5, 2]],
      ]),
    ).toEqual([[0.5, 2]]);
    expect(medianCurve([])).toEqual([]);
  });
});

describe('names of rows and curves', () => {
  const rowsOf = (results: readonly ResultRow[]) => summarise([resultOf('any', results)])[0]?.rows ?? [];

  test('labels that change along with others are left out', () => {
    const rows = rowsOf(
      [1, 100].flatMap((batch) =>
        [1, 3].map((replicas) => ({
          labels: { replicas, batch, connections: batch === 1 ? 64 : 4, bytes: 100 },
          figures: { publishesPerSec: 1 },
        })),
      ),
    );
    expect(tellingLabels(rows)).toEqual(['replicas', 'batch']);
    expect(rowName(rows[0]?.labels ?? {}, ['replicas', 'batch'], 'any')).toBe('replicas 1, batch 1');
  });

  test('rows are curves over sockets, one for each subject, though the rate changes too', () => {
    const rows = rowsOf(
      [1000, 5000].flatMap((sockets) => [fanout('bare', sockets, 4), fanout('live', sockets, 5)]),
    );
    expect(growthLabel(rows)).toBe('sockets');
    expect(seriesLabels(rows, 'sockets')).toEqual(['subject']);
  });

  test('single values at different sizes are no curve', () => {
    const rows = rowsOf([
      { labels: { what: 'a', connections: 1 }, figures: {} },
      { labels: { what: 'b', connections: 64 }, figures: {} },
    ]);
    expect(growthLabel(rows)).toBeUndefined();
  });
});

describe('axes', () => {
  test('a log axis is closed by a tick at either end', () => {
    expect(logTicks([1100, 19_000]).map(({ text }) => text)).toEqual(['1k', '2k', '5k', '10k', '20k']);
    expect(logTicks([0.3, 900]).map(({ text }) => text)).toEqual(['0.1', '1', '10', '100', '1k']);
    expect(logTicks([7, 7]).length).toBeGreaterThan(1);
    expect(logTicks([1000, 1000]).map(({ at }) => at)).toEqual([1000, 1500]);
  });

  test('numbers are short', () => {
    expect([0, 0.25, 999, 1500, 2e6, 3e9].map(shortNumber)).toEqual(['0', '0.25', '999', '1.5k', '2M', '3G']);
  });
});

describe('charts', () => {
  test('a missing library is said with how to install it', async () => {
    await expect(loadCharts(() => Promise.reject(new Error('Cannot find package')))).rejects.toThrow(
      'npm install echarts@6',
    );
  });

  test('nothing of a chart goes unescaped, and nothing of it is for the mouse', async () => {
    const charts = await loadCharts();
    const evil = '<script>"\'&{b}';
    const drawn = [
      charts.bars({
        title: evil,
        note: evil,
        series: [evil, 'b'],
        groups: [{ name: evil, bars: [{ value: 1, text: evil, range: [0, 2] }, undefined] }],
      }),
      charts.bars({
        title: evil,
        stacked: true,
        series: [evil],
        groups: [{ name: evil, bars: [{ value: 1, text: evil }] }],
      }),
      charts.latency(
        evil,
        [
          {
            name: evil,
            curve: [
              [0.5, 1],
              [0.99, 0],
              [1, 3],
            ],
          },
          { name: 'b', curve: [] },
        ],
        evil,
      ),
      charts.lines({
        title: evil,
        x: { title: evil, scale: 'linear' },
        y: { title: evil, scale: 'log' },
        series: [],
      }),
    ];
    for (const { text } of drawn) {
      expect(text).not.toMatch(/<script/);
      expect(text).not.toMatch(/<style|class="zr|NaN|Infinity/);
    }
    expect(drawn[0]?.text).toContain('{b}');
  });

  test('the slowest message of all, which would be infinitely far, is not drawn', async () => {
    const charts = await loadCharts();
    const curve: LatencyCurve = [
      [0.5, 1],
      [0.9, 2],
      [0.99, 3],
    ];
    const drawn = (points: LatencyCurve): string =>
      charts.latency('t', [{ name: 'n', curve: points }]).text.replace(/zr\d+-/g, '');
    expect(drawn([...curve, [1, 3]])).toBe(drawn(curve));
    expect(drawn(curve)).toContain('stroke="var(--c1)"');
  });

  test('a bar is as long as its value', async () => {
    const charts = await loadCharts();
    const groups = [50, 100].map((value) => ({ name: 'n', bars: [{ value, text: 't' }] }));
    const { text } = charts.bars({ title: 't', series: ['s'], groups });
    const lengths = [...text.matchAll(/<path d="M[\d.]+ [\d.]+l([\d.]+) 0l0 13/g)].map((found) =>
      Number(found[1]),
    );
    expect(lengths).toHaveLength(2);
    expect((lengths[1] ?? 0) / (lengths[0] ?? 1)).toBeCloseTo(2, 1);
  });
});

describe('report', () => {
  test('no results are an error that says what is missing', async () => {
    await expect(reportHtml([])).rejects.toThrow('no results to report');
  });

  test('each row of each run appears, with what it was called and measured', async () => {
    const subjects = ['bare', 'node-live', 'node-durable'];
    const rows = subjects.map((subject, i) =>
      fanout(subject, 1000, 4.01 + i, [
        [0.5, 1],
        [0.99, 3],
      ]),
    );
    const page = await reportHtml([
      resultOf('fanout', rows),
      resultOf('fanout', [fanout('bare', 1000, 9.87)], { startedAt: '2026-01-03T00:00:00.000Z' }),
      idle(2345, 1),
    ]);
    for (const subject of subjects) expect(page).toContain(`<td class="left">${subject}</td>`);
    for (const cell of ['4.01', '5.01', '6.01', '9.87', '2,345', '12.50']) {
      expect(page).toContain(`<td class="right">${cell}</td>`);
    }
    // The median of 4.01 and 9.87, and its range.
    expect(page).toContain('6.94<small>4.01 – 9.87</small>');
    expect(page).toContain('Test CPU, 2 cores, 16 GiB');
    expect(page).toContain('2026-01-02 03:01 UTC to 2026-01-03 00:00 UTC');
    expect(chartTitles(page)).toEqual(['Latency', 'Server CPU a delivery']);
    expect(page).toContain('6.01 µs, 1.50 ×');
  });

  test('several sizes are drawn as curves over sockets, and latency at each size', async () => {
    const curve: LatencyCurve = [
      [0.5, 1],
      [0.99, 3],
    ];
    const rows = [1000, 5000].flatMap((sockets) => [
      fanout('bare', sockets, 4, curve),
      fanout('live', sockets, 5, curve),
    ]);
    expect(chartTitles(await reportHtml([resultOf('grow', rows)]))).toEqual([
      'Latency, 1,000 sockets',
      'Latency, 5,000 sockets',
      'Server CPU a delivery, over sockets',
      'CPU a delivery against bare µWS, over sockets',
      'Latency of the slowest hundredth, over sockets',
    ]);
  });

  test('what results say is never markup', async () => {
    const evil = '<script>alert("1")</script>';
    const curve: LatencyCurve = [
      [0.5, 1],
      [0.99, 3],
    ];
    const evilRow = (subject: string, cpu: number): ResultRow => ({
      labels: { subject, [evil]: evil, sockets: 1000 },
      figures: { cpuUsPerDelivery: cpu },
      latency: curve,
    });
    const page = await reportHtml([
      resultOf(evil, [evilRow(evil, 1), evilRow('b', 2)], {
        startedAt: evil,
        version: evil,
        machine: { ...machine, cpu: evil, os: evil, node: evil },
        settings: { [evil]: evil },
        faults: [evil],
        doubts: [evil],
      }),
    ]);
    expect(page).not.toContain('<script');
    expect(page).not.toMatch(/id="[^"]*[<>&]/);
    expect(page.split('&#60;script&#62;').length).toBeGreaterThan(15);
  });

  test('figures that are missing leave nothing broken behind', async () => {
    const page = await reportHtml([
      resultOf('empty', [], { doubts: ['the client was the bottleneck'] }),
      resultOf('partial', [
        { labels: {}, figures: {} },
        { labels: { subject: 'a' }, figures: { cpuUsPerDelivery: 0 } },
        { labels: { subject: 'b', sockets: 5 }, figures: { p99Ms: 0 }, latency: [] },
        { labels: { subject: 'c', sockets: 6 }, figures: {}, latency: [[1, 5]] },
      ]),
    ]);
    expect(page).toContain('No row was measured that may be believed.');
    expect(page).not.toMatch(/NaN|undefined|Infinity|null/);
  });

  test('faults are red and doubts amber, at the top and in the section', async () => {
    const page = await reportHtml([
      resultOf('mixed', [], { faults: ['2 came twice'], doubts: ['client was busy'] }),
    ]);
    expect(page.match(/class="notice bad"(?:(?!<\/div>)[^])*2 came twice/g)).toHaveLength(2);
    expect(page.match(/class="notice warn"(?:(?!<\/div>)[^])*client was busy/g)).toHaveLength(2);
    expect(await reportHtml([idle(1, 1)])).not.toContain('class="notice');
  });

  test('a page needs nothing but itself', async () => {
    const page = await reportHtml([resultOf('fanout', [fanout('bare', 1000, 4), fanout('live', 1000, 5)])]);
    expect(page).not.toMatch(/<(?:script|link|img|iframe)\b|\s(?:src|on\w+)=|url\(|@import/);
    expect(page).toContain("default-src 'none'");
    // A colour that the page does not define would be black on black.
    const style = /<style>([^]*?)<\/style>/.exec(page)?.[1] ?? '';
    const used = new Set([...page.matchAll(/var\((--[\w-]+)\)/g)].map((found) => found[1] ?? ''));
    for (let i = 1; i <= seriesColours; i++) used.add(`--c${i}`);
    for (const name of used) expect(style.split(`${name}:`).length, name).toBe(3);
  });
});

test('markup escapes all that is not markup', () => {
  expect(html`<p title="${'"<'}">${['a&', html`<b>${1}</b>`, undefined]}</p>`.text).toBe(
    '<p title="&#34;&#60;">a&#38;<b>1</b></p>',
  );
});

describe('command', () => {
  test('files become a page in a folder that is made, and other files are named', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'topicast-report-'));
    try {
      const [good, bad] = [join(folder, 'good.json'), join(folder, 'bad.json')];
      await writeFile(good, JSON.stringify(idle(2345, 1)));
      await writeFile(bad, '{"format":2}');
      const out = join(folder, 'pages', 'report.html');
      await runReport([good], out);
      expect(await readFile(out, 'utf8')).toContain('2,345');
      for (const file of [bad, join(folder, 'none.json')]) {
        const failing = runReport([good, file], out);
        await expect(failing).rejects.toThrow(file);
        await expect(failing).rejects.toThrow(NotAResult);
      }
      await expect(runReport([good], folder)).rejects.toThrow(`cannot write ${folder}: EISDIR`);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test('a page that can never be written ends with an error', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'topicast-report-'));
    try {
      const good = join(folder, 'good.json');
      await writeFile(good, JSON.stringify(idle(2345, 1)));
      // In /proc no folder can be made, whoever tries.
      await expect(runReport([good], '/proc/pages/report.html')).rejects.toThrow("mkdir '/proc/pages'");
      const belowFile = join(good, 'pages/report.html');
      await expect(runReport([good], belowFile)).rejects.toThrow(`cannot write ${belowFile}: ENOTDIR`);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
