import { readFile } from 'node:fs/promises';
import { Command, InvalidArgumentError, Option } from 'commander';
import { formatCosts } from '../../bench/plan/costs.js';
import { inputNames, inputSpecs, PlanInputError, type InputName } from '../../bench/plan/inputs.js';
import { PlanImpossible } from '../../bench/plan/nodes.js';
import {
  checkTable,
  costTable,
  inputTable,
  planTables,
  simulationTables,
  textOf,
  whatIfTable,
} from '../../bench/plan/print.js';
import {
  answer,
  check,
  costsOf,
  jsonOf,
  type NamedText,
  type PlanAnswer,
  type PlanRequest,
} from '../../bench/plan/session.js';
import { save as saveFile } from '../../bench/result/save.js';
import { flagOf } from '../../bench/scenarios/options.js';
import { CliFailure, describe, UsageError } from './errors.js';
import { writeLine, type CliIo } from './io.js';
import { commandOutput } from './output.js';

/** What `plan` needs of the command line that it is part of. */
export interface PlanParts {
  readonly io: CliIo;
}

interface PlanFlags extends Partial<Record<InputName, string>> {
  readonly file?: string;
  readonly json?: boolean;
  readonly html?: string;
  readonly whatIf?: string;
  readonly simulate?: boolean;
  readonly seed: number;
  readonly from?: readonly string[];
  readonly costs?: string;
  readonly saveCosts?: string;
  readonly check?: string;
}

/** Runs `topicast plan …`. @throws UsageError for wrong inputs; CliFailure when no number of servers is enough */
export async function plan(args: readonly string[], parts: PlanParts): Promise<void> {
  try {
    await createPlan(parts).parseAsync([...args], { from: 'user' });
  } catch (error) {
    if (error instanceof PlanInputError) throw new UsageError(error.message, { cause: error });
    if (error instanceof PlanImpossible) throw new CliFailure(error.message, { cause: error });
    throw error;
  }
}

function createPlan({ io }: PlanParts): Command {
  const command = new Command('topicast plan')
    .description(
      'Works out from what things cost what a launch needs: nodes, Redis, NATS, network, and how long a storm takes.',
    )
    .exitOverride()
    .allowExcessArguments(false)
    .configureOutput(commandOutput(io))
    .addHelpText('after', examples);
  addOutputs(command);
  for (const name of inputNames) command.addOption(inputOption(name));
  return command.action((flags: PlanFlags) => run(flags, io));
}

const examples = `
Examples:
  topicast plan --users 1000000 --topics-per-user 8 --messages-per-s 2000 --bytes 300
  topicast plan --file launch.json --html plan.html
  topicast plan --what-if users=100000..5000000:12
  topicast plan --users 100000000 --simulate
  topicast plan --from bench-results/*.json --save-costs costs.json
  topicast plan --costs costs.json --check bench-results/mixed.json

Exit codes: 0 planned, 1 no number of servers is enough, 2 wrong usage.`;

function addOutputs(command: Command): void {
  command
    .option('--file <file>', 'inputs as a JSON object, by their names; flags win over it')
    .option('--json', 'print JSON')
    .option('--html <file>', 'write a page with charts')
    .option('--what-if <input=from..to:steps>', 'plan for several values of one input')
    .option(
      '--simulate',
      'add what waiting does: latency on a node, and a storm with the back-off of clients',
    )
    .option('--seed <n>', 'of the simulation', parseSeed, 1)
    .option(
      '--from <files...>',
      'results of `topicast bench`: what they measured goes before the known costs',
    )
    .option('--costs <file>', 'known costs in place of those that are shipped')
    .option('--save-costs <file>', 'write the costs that were used')
    .option('--check <file>', 'a result of `topicast bench mixed`: print what would have been predicted');
}

function inputOption(name: InputName): Option {
  const { argument, fallback, help } = inputSpecs[name];
  return new Option(`${flagOf(name)} ${argument}`, `${help} (default: ${fallback})`);
}

function parseSeed(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('Expected a whole number.');
  return Number(text);
}

async function run(flags: PlanFlags, io: CliIo): Promise<void> {
  const request = await requestOf(flags);
  if (flags.check !== undefined) return printCheck(flags, request, io);
  const answered = answer(request);
  for (const line of answered.left) await writeLine(io.stderr, `no cost taken: ${line}`);
  if (flags.saveCosts !== undefined) await save(flags.saveCosts, formatCosts(answered.costs), io);
  if (flags.html !== undefined) {
    await save(flags.html, await pageOf(answered), io);
  }
  await writeLine(
    io.stdout,
    flags.json === true ? JSON.stringify(jsonOf(answered), null, 2) : tablesOf(answered),
  );
}

async function pageOf(answered: PlanAnswer): Promise<string> {
  const [{ planPage }, { loadCharts }] = await Promise.all([
    import('../../bench/plan/html.js'),
    import('../../bench/report/chart.js'),
  ]);
  return planPage(answered, await loadCharts());
}

async function printCheck(
  { check: file = '', json, seed }: PlanFlags,
  request: PlanRequest,
  io: CliIo,
): Promise<void> {
  const { costs } = costsOf(request);
  const checked = check(await read(file), costs, seed);
  await writeLine(io.stdout, json === true ? JSON.stringify(checked, null, 2) : textOf(checkTable(checked)));
}

function tablesOf({ costs, given, plan: planned, simulation, taken, whatIf }: PlanAnswer): string {
  const tables = [
    inputTable(given),
    costTable(costs),
    ...planTables(planned),
    ...(simulation === undefined ? [] : simulationTables(simulation)),
    ...(whatIf === undefined ? [] : [whatIfTable(whatIf)]),
  ];
  const measured = taken.length === 0 ? [] : [`costs taken from --from: ${taken.join(', ')}`];
  const warnings = planned.warnings.map((warning) => `note: ${warning}`);
  return [...tables.map(textOf), ...measured, ...warnings].join('\n\n');
}

async function requestOf(flags: PlanFlags): Promise<PlanRequest> {
  const given = inputNames.flatMap((name) => {
    const value = flags[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return {
    flags: Object.fromEntries(given),
    file: flags.file === undefined ? undefined : await read(flags.file),
    costs: flags.costs === undefined ? undefined : await read(flags.costs),
    results: await Promise.all((flags.from ?? []).map(read)),
    whatIf: flags.whatIf,
    simulate: flags.simulate ?? false,
    seed: flags.seed,
  };
}

async function read(name: string): Promise<NamedText> {
  try {
    return { name, text: await readFile(name, 'utf8') };
  } catch (error) {
    throw new UsageError(`cannot read ${name}: ${describe(error)}`, { cause: error });
  }
}

async function save(name: string, text: string, io: CliIo): Promise<void> {
  try {
    await saveFile(name, text);
  } catch (error) {
    throw new CliFailure(`cannot write ${name}: ${describe(error)}`, { cause: error });
  }
  await writeLine(io.stderr, `written: ${name}`);
}
