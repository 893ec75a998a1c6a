import { thisMachine } from '../result/machine.js';
import type { BenchResult, ResultRow } from '../result/result.js';
import { withContext } from './context.js';
import type { Progress } from './progress.js';
import type { Scenario } from './scenario.js';

export interface RunParts {
  readonly signal: AbortSignal;
  readonly progress: Progress;
  /** Of Topicast. */
  readonly version: string;
}

/** @param given what differs from the options' defaults, by key @throws Error when it cannot be measured */
export async function runScenario(
  scenario: Scenario,
  given: Readonly<Record<string, unknown>>,
  { progress, signal, version }: RunParts,
): Promise<BenchResult> {
  const values: Record<string, unknown> = {};
  for (const [key, { fallback }] of Object.entries(scenario.options)) values[key] = given[key] ?? fallback;
  const startedAt = new Date().toISOString();
  const outcome = await withContext({ signal, progress }, (context) => scenario.run(context, values));
  return {
    format: 1,
    scenario: scenario.name,
    startedAt,
    version,
    machine: thisMachine(),
    settings: { ...plainSettings(values), ...outcome.settings },
    rows: outcome.rows.map(withFiniteFigures),
    faults: outcome.faults,
    doubts: outcome.doubts,
  };
}

/** A cost of something that never happened is no figure, and JSON would make `null` of it. */
function withFiniteFigures({ figures, ...row }: ResultRow): ResultRow {
  const finite = Object.entries(figures).filter(([, value]) => Number.isFinite(value));
  return { ...row, figures: Object.fromEntries(finite) };
}

/** As JSON can hold and a table can show them: lists as text, what was not given left out. */
function plainSettings(values: Readonly<Record<string, unknown>>): Record<string, string | number | boolean> {
  const plain: Record<string, string | number | boolean> = {};
  for (const [key, value] of Object.entries(values)) {
    if (value === '') continue;
    if (typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value)) {
      plain[key] = value as string | number | boolean;
    } else if (Array.isArray(value)) {
      plain[key] = value.join(',');
    }
  }
  return plain;
}
