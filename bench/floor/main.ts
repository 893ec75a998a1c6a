import { writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { Command, CommanderError, InvalidArgumentError } from 'commander';
import { faultsOf, headLine, isQuiet, runLine, summarise, summaryTable } from './report.js';
import { measure, type RunResult, type RunSettings } from './run.js';
import { subjects, type Subject } from './subjects.js';

/** Exit codes: 0 measured, 1 something was lost or may not be believed, 2 wrong usage. */

interface Arguments {
  readonly sockets: number;
  readonly rate: number;
  readonly seconds: number;
  readonly warmUp: number;
  readonly payload: number;
  readonly rounds: number;
  readonly probes: number;
  readonly nap: number;
  readonly quiet: number;
  readonly subjects?: Subject['name'][];
  readonly out?: string;
  readonly profile?: string;
}

function whole(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Expected a whole number from ${min} to ${max}.`);
  };
}

function factor(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && value > 1) return value;
  throw new InvalidArgumentError('Expected a number above 1.');
}

/** Rounds that are tried for one that is quiet. */
const triesPerRound = 4;

function names(text: string): Subject['name'][] {
  return text.split(',').map((name) => {
    const known = subjects.find((subject) => subject.name === name)?.name;
    if (known !== undefined) return known;
    throw new InvalidArgumentError(`Expected of ${subjects.map((subject) => subject.name).join(', ')}.`);
  });
}

const program = new Command('bench:floor')
  .description(
    'What a delivery costs a node, against a µWebSockets process that does nothing but fan out the same bytes to the same number of ' +
      'sockets. Runs take turns, so that what else the machine does falls on all of them. Linux only: CPU is read from /proc.',
  )
  .option('--sockets <n>', 'subscribers of the one topic', whole(1, 15_000), 1000)
  .option('--rate <n>', 'messages a second', whole(1, 100_000), 200)
  .option('--seconds <n>', 'how long a run counts', whole(1, 600), 5)
  .option('--warm-up <n>', 'seconds before that', whole(0, 60), 2)
  .option('--payload <bytes>', 'of one message', whole(60, 60_000), 80)
  .option('--rounds <n>', 'runs of each', whole(1, 100), 3)
  .option('--probes <n>', 'sockets among them that read at once and take the latency', whole(2, 1000), 20)
  .option('--nap <ms>', 'how late the other sockets may read; 0 reads at once', whole(0, 1000), 20)
  .option(
    '--quiet <n>',
    'leave rounds out in which a read of a probe brought more messages than this: others kept the machine from its work; up to ' +
      'four times --rounds are tried',
    factor,
    Infinity,
  )
  .option('--subjects <names>', 'which servers, comma-separated (all)', names)
  .option('--out <file>', 'write every run as JSON')
  .option('--profile <dir>', 'let the servers write CPU profiles there; slows them down')
  .exitOverride();

async function main(): Promise<number> {
  try {
    program.parse();
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    throw error;
  }
  const args = program.opts<Arguments>();
  if (args.probes > args.sockets) {
    process.stderr.write('--probes: at most as many as --sockets\n');
    return 2;
  }
  const settings: RunSettings = {
    sockets: args.sockets,
    perSec: args.rate,
    seconds: args.seconds,
    warmUpSec: args.warmUp,
    payloadBytes: args.payload,
    probes: args.probes,
    napMs: args.nap,
    ...(args.profile !== undefined && { profileDir: args.profile }),
  };
  const rounds = await runRounds(settings, args);
  const quiet = rounds.filter((round) => isQuiet(round, args.quiet));
  if (quiet.length < rounds.length) print(`\n${quiet.length} of ${rounds.length} rounds were quiet enough`);
  const summary = summarise(quiet);
  print(`\n${summaryTable(summary)}`);
  if (args.out !== undefined) {
    const machine = { cpus: cpus().length, model: cpus()[0]?.model, node: process.version };
    writeFileSync(args.out, `${JSON.stringify({ machine, settings, summary, rounds }, null, 2)}\n`);
  }
  const faults = rounds.flat().flatMap(faultsOf);
  for (const fault of faults) process.stderr.write(`${fault}\n`);
  return faults.length === 0 ? 0 : 1;
}

async function runRounds(settings: RunSettings, args: Arguments): Promise<RunResult[][]> {
  const chosen = subjects.filter(({ name }) => args.subjects?.includes(name) ?? true);
  print(
    `${settings.sockets} sockets, ${settings.perSec} messages/s of ${settings.payloadBytes} bytes, ` +
      `${args.rounds} rounds of ${settings.seconds} s\n\n${headLine()}`,
  );
  const rounds: RunResult[][] = [];
  let missing = args.rounds;
  for (let tries = args.rounds * triesPerRound; missing > 0 && tries > 0; tries--) {
    const runs: RunResult[] = [];
    for (const subject of chosen) {
      const run = await measure(subject, settings);
      print(runLine(run));
      runs.push(run);
    }
    rounds.push(runs);
    if (isQuiet(runs, args.quiet)) missing--;
  }
  return rounds;
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

process.exitCode = await main();
