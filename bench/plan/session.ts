import { parseResult } from '../result/result.js';
import { checkMixed, parseMixed, type CheckedFigure } from './check.js';
import { costsFrom, type ResultFile } from './costs-from.js';
import { parseCosts, shippedCosts, type CostName, type KnownCosts } from './costs.js';
import { PlanInputError, readInputs, type GivenInputs, type InputName } from './inputs.js';
import { makePlan, type Plan } from './plan.js';
import { planRows } from './rows.js';
import { simulate, type Simulation } from './simulate.js';
import { parseWhatIf, runWhatIf, type WhatIf } from './what-if.js';

/** A file with its name, for messages. */
export interface NamedText {
  readonly name: string;
  readonly text: string;
}

/** Everything that `topicast plan` is asked. */
export interface PlanRequest {
  readonly flags: Readonly<Partial<Record<InputName, string>>>;
  /** Inputs, as JSON. */
  readonly file?: NamedText | undefined;
  /** Costs in place of the shipped ones. */
  readonly costs?: NamedText | undefined;
  /** Results of `topicast bench`. */
  readonly results: readonly NamedText[];
  readonly whatIf?: string | undefined;
  readonly simulate: boolean;
  readonly seed: number;
}

export interface PlanAnswer {
  readonly given: GivenInputs;
  readonly costs: KnownCosts;
  /** Costs that the results told, and results that told none. */
  readonly taken: readonly CostName[];
  readonly left: readonly string[];
  readonly plan: Plan;
  readonly whatIf?: WhatIf;
  readonly simulation?: Simulation;
}

/** @throws PlanInputError for what is wrong with the request; PlanImpossible when no number of servers is enough */
export function answer(request: PlanRequest): PlanAnswer {
  const { file, flags, seed } = request;
  const given = readInputs(
    file === undefined ? undefined : parsed(file, (text): unknown => JSON.parse(text)),
    flags,
    file?.name,
  );
  // Before the plan, which may take longer than a person likes to wait for a typing mistake.
  const range = request.whatIf === undefined ? undefined : parseWhatIf(request.whatIf);
  const { costs, left, taken } = costsOf(request);
  const plan = makePlan(given.inputs, costs);
  return {
    given,
    costs,
    taken,
    left,
    plan,
    ...(range === undefined ? {} : { whatIf: runWhatIf(given.inputs, costs, range) }),
    ...(request.simulate ? { simulation: simulate(plan, seed) } : {}),
  };
}

/** @throws PlanInputError */
export function costsOf({ costs, results }: Pick<PlanRequest, 'costs' | 'results'>): {
  readonly costs: KnownCosts;
  readonly taken: readonly CostName[];
  readonly left: readonly string[];
} {
  const known = costs === undefined ? shippedCosts() : parsed(costs, parseCosts);
  const files = results.map((file): ResultFile => ({ file: file.name, result: parsed(file, parseResult) }));
  return costsFrom(known, files);
}

/** @throws PlanInputError */
export function check(file: NamedText, costs: KnownCosts, seed: number): CheckedFigure[] {
  return parsed(file, (text) => checkMixed(parseMixed(text), costs, seed));
}

/** For programs: inputs, costs with their sources, every figure by its key. */
export function jsonOf({ costs, given, plan, simulation, whatIf }: PlanAnswer): unknown {
  const { inputs, from } = given;
  return {
    inputs,
    from,
    costs,
    figures: planRows(plan).map(({ key, part, title, unit, value }) => ({ key, part, title, unit, value })),
    cpu: plan.load.cpu,
    warnings: plan.warnings,
    ...(simulation === undefined ? {} : { simulation }),
    ...(whatIf === undefined
      ? {}
      : {
          whatIf: {
            input: whatIf.input,
            steps: whatIf.steps.map(({ fault, rows, value }) => ({
              value,
              ...(fault === undefined ? {} : { fault }),
              figures: Object.fromEntries(rows.map((row) => [row.key, row.value])),
            })),
          },
        }),
  };
}

function parsed<T>({ name, text }: NamedText, parse: (text: string) => T): T {
  try {
    return parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new PlanInputError(`${name}: ${why}`, { cause: error });
  }
}
