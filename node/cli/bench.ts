import { Command, InvalidArgumentError, Option } from 'commander';
import { NotAResult, runReport } from '../../bench/report/command.js';
import { scenarios } from '../../bench/scenarios/index.js';
import { flagOf, OptionError, type OptionSpec } from '../../bench/scenarios/options.js';
import { createProgress } from '../../bench/scenarios/progress.js';
import { runScenario } from '../../bench/scenarios/run.js';
import type { Scenario } from '../../bench/scenarios/scenario.js';
import type { BenchResult } from '../../bench/result/result.js';
import { checkSaves, save } from '../../bench/result/save.js';
import { resultTable } from '../../bench/result/table.js';
import { CliFailure, describe, UsageError } from './errors.js';
import { writeLine, type CliIo } from './io.js';
import { commandOutput } from './output.js';

/** What `bench` needs of the command line that it is part of. */
export interface BenchParts {
  readonly io: CliIo;
  readonly version: string;
}

/** Runs `topicast bench …`. @throws CommanderError for wrong usage; CliFailure when a count was off or nothing could be measured */
export async function bench(args: readonly string[], parts: BenchParts): Promise<void> {
  await createBench(parts).parseAsync([...args], { from: 'user' });
}

function createBench(parts: BenchParts): Command {
  const { io } = parts;
  const root = new Command('topicast bench')
    .description(
      'Measures a scenario, each with the servers that it needs. Linux only: CPU is read from /proc.',
    )
    .exitOverride()
    .configureOutput(commandOutput(io))
    .addHelpText(
      'after',
      '\nExamples:\n  topicast bench fanout --help\n  topicast bench fanout --sockets 5000 --rate 100 --json fanout.json\n  topicast bench report bench-results/*.json\n' +
        '\nExit codes: 0 measured, 1 a count was off, nothing could be measured or written, 2 wrong usage.',
    )
    .usage('<name> [options]')
    .argument('[name]')
    .allowExcessArguments()
    .action((name: string | undefined) => {
      if (name === undefined) return root.outputHelp();
      const known = [...scenarios.map((scenario) => scenario.name), 'report'].join(', ');
      throw new UsageError(`there is no scenario ${name}; there are ${known}`);
    });
  for (const scenario of scenarios) addScenario(root, scenario, parts);
  addReport(root, parts);
  return root;
}

function addScenario(root: Command, scenario: Scenario, parts: BenchParts): void {
  const command = root.command(scenario.name).description(scenario.summary).allowExcessArguments(false);
  for (const [key, option] of Object.entries(scenario.options)) command.addOption(optionOf(key, option));
  command
    .option('--json <file>', 'where the result is written; bench-results/<name>-<time>.json unless given')
    .action(async ({ json, ...values }: Record<string, unknown>) => {
      const file = typeof json === 'string' ? json : fileFor(scenario.name);
      await writing(file, () => checkSaves(file));
      const result = await measure(scenario, values, parts);
      // Before it is written: the figures may have taken an hour.
      await print(result, parts);
      await writing(file, () => save(file, `${JSON.stringify(result, null, 2)}\n`));
      await writeLine(parts.io.stderr, `written: ${file}`);
      if (result.faults.length > 0) {
        throw new CliFailure(`${scenario.name} has failed: ${result.faults.join('; ')}`);
      }
    });
}

function addReport(root: Command, { io }: BenchParts): void {
  root
    .command('report')
    .description('Makes one HTML page with charts of the results of scenarios.')
    .argument('<file...>', 'results, as scenarios write them')
    .option('--out <file>', 'where the page is written', 'report.html')
    .action(async (files: string[], { out }: { out: string }) => {
      try {
        await runReport(files, out);
      } catch (cause) {
        if (cause instanceof NotAResult) throw new UsageError(cause.message, { cause });
        throw new CliFailure(describe(cause), { cause });
      }
      await writeLine(io.stderr, `written: ${out}`);
    });
}

function optionOf(key: string, spec: OptionSpec<unknown>): Option {
  const { argument, fallback, help } = spec;
  const shown = Array.isArray(fallback) ? fallback.join(',') : fallback;
  const option = new Option(argument === '' ? flagOf(key) : `${flagOf(key)} ${argument}`, help).argParser(
    (text: string) => {
      try {
        return spec.parse(text);
      } catch (error) {
        throw error instanceof OptionError ? new InvalidArgumentError(error.message) : error;
      }
    },
  );
  return fallback === '' || fallback === false ? option : option.default(fallback, String(shown));
}

async function measure(
  scenario: Scenario,
  values: Readonly<Record<string, unknown>>,
  { io, version }: BenchParts,
): Promise<BenchResult> {
  const stopping = new AbortController();
  const forget = io.onStopSignal(() => stopping.abort(new CliFailure('interrupted')));
  try {
    const progress = createProgress(io.stderr);
    return await runScenario(scenario, values, { signal: stopping.signal, progress, version });
  } finally {
    forget();
  }
}

function fileFor(name: string): string {
  return `bench-results/${name}-${new Date().toISOString().replaceAll(':', '-')}.json`;
}

async function writing(file: string, write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (cause) {
    throw new CliFailure(
      `cannot write ${file === '' ? 'to a file without a name' : file}: ${describe(cause)}`,
      { cause },
    );
  }
}

async function print(result: BenchResult, { io }: BenchParts): Promise<void> {
  if (result.rows.length > 0) await writeLine(io.stdout, resultTable(result.rows));
  for (const doubt of result.doubts) await writeLine(io.stderr, `in doubt: ${doubt}`);
  for (const fault of result.faults) await writeLine(io.stderr, `fault: ${fault}`);
}
