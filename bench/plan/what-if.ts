import type { KnownCosts } from './costs.js';
import { inputSpecs, isInputName, PlanInputError, readInput, type PlanInputs } from './inputs.js';
import { PlanImpossible } from './nodes.js';
import { makePlan } from './plan.js';
import { planRows, type PlanRow } from './rows.js';

export interface WhatIf {
  readonly input: string;
  readonly steps: readonly WhatIfStep[];
}

export interface WhatIfStep {
  readonly value: number;
  /** Empty when it cannot be planned, and `fault` says why. */
  readonly rows: readonly PlanRow[];
  readonly fault?: string;
}

/** Figures that are worth a column, by their keys. */
export const whatIfColumns = [
  'nodes',
  'cpuShare',
  'sessionsPerNode',
  'memoryPerNode',
  'network',
  'redisMasters',
  'redisMemory',
  'natsServers',
  'natsOut',
  'natsDisk',
  'stormSeconds',
] as const;

const stepsShort = 8;
const stepsMax = 1000;

/**
 * @param text `users=100000..5000000`, with the number of steps: `users=100000..5000000:20`. Far ends are joined by equal factors, near ones by
 *   equal distances
 * @throws PlanInputError
 */
export function parseWhatIf(text: string): {
  readonly input: keyof PlanInputs;
  readonly values: readonly number[];
} {
  const match = /^([a-zA-Z]+)=([^.:]+(?:\.\d+)?)\.\.([^:]+?)(?::(\d+))?$/.exec(text);
  const [, name = '', from = '', to = '', steps = String(stepsShort)] = match ?? [];
  if (match === null) {
    throw new PlanInputError(
      'what-if: Expected INPUT=FROM..TO or INPUT=FROM..TO:STEPS, such as users=100000..5000000:20.',
    );
  }
  if (!isInputName(name)) throw new PlanInputError(`what-if: there is no input ${name}`);
  if (typeof inputSpecs[name].fallback !== 'number') {
    throw new PlanInputError(`what-if: ${name} is no number`);
  }
  const [low, high] = [Number(readInput(name, from)), Number(readInput(name, to))];
  if (low >= high) throw new PlanInputError(`what-if: Expected a range upwards, not ${from} to ${to}.`);
  const count = Number(steps);
  if (count < 2 || count > stepsMax) throw new PlanInputError(`what-if: Expected 2 to ${stepsMax} steps.`);
  // Only whole numbers are values of some inputs; the text tells, as `readInput` does.
  const isWhole = Number.isInteger(low) && Number.isInteger(high) && !isValue(name, String(low + 0.5));
  const values = between(low, high, count).map((value) => (isWhole ? Math.round(value) : value));
  return { input: name, values: [...new Set(values)] };
}

export function runWhatIf(
  inputs: PlanInputs,
  costs: KnownCosts,
  { input, values }: ReturnType<typeof parseWhatIf>,
): WhatIf {
  return { input, steps: values.map((value) => stepAt({ ...inputs, [input]: value }, costs, value)) };
}

function stepAt(inputs: PlanInputs, costs: KnownCosts, value: number): WhatIfStep {
  try {
    return { value, rows: planRows(makePlan(inputs, costs)) };
  } catch (error) {
    if (error instanceof PlanImpossible) return { value, rows: [], fault: error.message };
    throw error;
  }
}

function between(low: number, high: number, count: number): number[] {
  const isFar = low > 0 && high / low >= 10;
  return Array.from({ length: count }, (_, i) => {
    const share = i / (count - 1);
    if (i === count - 1) return high;
    return isFar ? low * (high / low) ** share : low + (high - low) * share;
  });
}

function isValue(name: keyof PlanInputs, text: string): boolean {
  try {
    readInput(name, text);
    return true;
  } catch (error) {
    if (error instanceof PlanInputError) return false;
    throw error;
  }
}
