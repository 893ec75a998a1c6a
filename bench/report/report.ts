import type { BenchResult } from '../result/result.js';
import { loadCharts, type Charts } from './chart.js';
import { html } from './markup.js';
import { chartsHtml, machineFact, noticeHtml, pageHtml, type Fact, type Section } from './page.js';
import { scenarioCharts } from './report-charts.js';
import {
  everyRowTable,
  runTable,
  sectionId,
  settingsTable,
  summaryTable,
  timeText,
} from './report-tables.js';
import { summarise, type ScenarioSummary } from './summary.js';

/**
 * One self-contained page of everything that these runs have measured, the same for the same runs. Runs of a scenario with the same settings,
 * version and machine become one row with least, median and greatest.
 *
 * @throws Error when there is nothing to report, or charts cannot be drawn
 */
export async function reportHtml(results: readonly BenchResult[]): Promise<string> {
  if (results.length === 0) {
    throw new Error('no results to report: name files that `topicast bench` has written');
  }
  const charts = await loadCharts();
  const summaries = summarise(results);
  const runs = summaries.flatMap((summary) => summary.runs);
  return pageHtml({
    title: 'Topicast benchmarks',
    lead:
      'What was measured, and how it compares. Figures of one run may be compared with each other; those of different machines or times only ' +
      'by their ratios.',
    facts: factsOf(runs),
    sections: [
      { id: 'runs', title: 'Runs', body: [...noticesOf(runs, true), runTable(runs)] },
      ...summaries.map((summary) => sectionOf(summary, charts)),
    ],
  });
}

function factsOf(runs: readonly BenchResult[]): Fact[] {
  const times = runs.map(({ startedAt }) => startedAt).sort();
  const [first, last] = [timeText(times[0] ?? ''), timeText(times.at(-1) ?? '')];
  const machines = new Map(runs.map(({ machine }) => [JSON.stringify(machine), machineFact(machine)]));
  const versions = [...new Set(runs.map(({ version }) => version))];
  return [
    ['measured', first === last ? first : `${first} to ${last}`],
    ['version', `Topicast ${versions.join(', ')}`],
    ...machines.values(),
  ];
}

/** @param named whether each line begins with the scenario */
function noticesOf(runs: readonly BenchResult[], named: boolean) {
  const lines = (kind: 'faults' | 'doubts'): string[] =>
    runs.flatMap((run) =>
      run[kind].map((line) => `${named ? `${run.scenario}, ` : ''}${timeText(run.startedAt)}: ${line}`),
    );
  return [
    noticeHtml('bad', 'Failed: a count was off', lines('faults')),
    noticeHtml('warn', 'In doubt', lines('doubts')),
  ];
}

function sectionOf(summary: ScenarioSummary, charts: Charts): Section {
  const { rows, runs, scenario } = summary;
  const repeated = rows.some(({ count }) => count > 1);
  const measured =
    rows.length === 0
      ? html`<p>No row was measured that may be believed.</p>`
      : [
          chartsHtml(scenarioCharts(summary, charts)),
          html`<h3>${repeated ? 'Median, least and greatest' : 'Figures'}</h3>`,
          summaryTable(summary),
          repeated
            ? html`<details>
                <summary>Every row of every run</summary>
                ${everyRowTable(summary)}
              </details>`
            : undefined,
        ];
  const settings = html`<details>
    <summary>Settings</summary>
    ${settingsTable(summary)}
  </details>`;
  return { id: sectionId(scenario), title: scenario, body: [...noticesOf(runs, false), measured, settings] };
}
