import { describe, expect, test } from 'vitest';
import { barsHeight, nameLines } from '../../bench/report/chart-bars.js';
import { latencyLines } from '../../bench/report/chart-lines.js';
import { reportHtml } from '../../bench/report/report.js';
import type { BenchResult, ResultRow } from '../../bench/result/result.js';

function resultOf(scenario: string, rows: readonly ResultRow[]): BenchResult {
  return {
    format: 1,
    scenario,
    startedAt: '2026-01-02T03:04:05.000Z',
    version: '0.1.0',
    machine: { cpu: 'Test CPU', cores: 2, memoryBytes: 2 ** 34, os: 'Linux', node: 'v20.0.0' },
    settings: {},
    rows,
    faults: [],
    doubts: [],
  };
}

describe('names of bars', () => {
  test('are broken between words', () => {
    expect(nameLines('bare')).toEqual(['bare']);
    expect(nameLines('replicas 1, batch 1000, connections 4')).toEqual([
      'replicas 1, batch',
      '1000, connections',
      '4',
    ]);
  });

  test('are cut when they are too long, whatever they are made of', () => {
    const long = nameLines('a'.repeat(200));
    expect(long).toHaveLength(4);
    expect(long.at(-1)).toMatch(/a …$/);
    expect(nameLines('🙂'.repeat(40)).join('')).toBe('🙂'.repeat(40));
    expect(nameLines('')).toEqual([]);
  });

  test('of several lines make the chart higher', () => {
    const height = (name: string): number =>
      barsHeight({ title: '', series: ['s'], groups: [{ name, bars: [{ value: 1, text: '1' }] }] });
    expect(height('one two')).toBe(height('one'));
    expect(height('replicas 1, batch 1000, connections 4')).toBeGreaterThan(height('one'));
  });
});

describe('latency curves', () => {
  test('that cannot be drawn are left out, and the others keep their colours', () => {
    const { series } = latencyLines('t', [
      { name: 'one point', curve: [[0.5, 3]] },
      {
        name: 'zeros',
        curve: [
          [0, 0],
          [0.5, 0],
          [1, 4],
        ],
      },
      {
        name: 'two points',
        curve: [
          [0.5, 1],
          [0.9, 2],
          [1, 9],
        ],
      },
    ]);
    expect(series.map(({ colour, name }) => [name, colour])).toEqual([['two points', 2]]);
    expect(series[0]?.points.map(([x, y]) => [Math.round(x), y])).toEqual([
      [2, 1],
      [10, 2],
    ]);
  });

  test('are no chart when there is none to draw', async () => {
    const row: ResultRow = { labels: { subject: 'a' }, figures: { p50Ms: 3 }, latency: [[0.5, 3]] };
    expect(await reportHtml([resultOf('fanout', [row])])).not.toContain('<figure>');
  });
});

test('two figures of one thing are told apart by their own names alone', async () => {
  const rows = [500, 1000, 2000].map((rate) => ({
    labels: { rate },
    figures: { seconds: 10, idealSeconds: 9 },
  }));
  const page = await reportHtml([resultOf('storm', rows)]);
  expect(page).toContain('</svg>time');
  expect(page).not.toContain('time, storm');
});
