import { Command, CommanderError, InvalidArgumentError } from 'commander';
import { runDemo } from './run.js';

/** Exit codes: 0 everything arrived as it should, 1 not, 2 wrong usage, 130 interrupted. */

interface Arguments {
  readonly speed: number | 'max';
  readonly drop: number;
  readonly seed?: number;
  readonly ring?: number;
}

function speed(text: string): number | 'max' {
  if (text === 'max') return text;
  const value = Number(text);
  if (text.trim() !== '' && value > 0 && Number.isFinite(value)) return value;
  throw new InvalidArgumentError('Expected a number above 0, or max.');
}

function whole(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Expected a whole number from ${min} to ${max}.`);
  };
}

const program = new Command('demo')
  .description(
    "Replays a day's slice of traffic to 1,200 users through a node of its own, cuts the connections of some of them, " +
      'and checks that everybody received exactly what they were owed.',
  )
  .option('--speed <times>', 'how many times faster than it happened; max: as fast as possible', speed, 20)
  .option('--drop <percent>', 'of the users lose their connection and come back', whole(0, 100), 20)
  .option('--seed <n>', 'decides who is cut and when; random by default, printed', whole(0, 2 ** 31 - 1))
  .option(
    '--ring <n>',
    'messages of a topic that the node keeps in memory; few make it read its store',
    whole(1, 1e6),
  )
  .exitOverride();

async function main(): Promise<number> {
  try {
    program.parse();
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    throw error;
  }
  const interrupted = new AbortController();
  const interrupt = () => interrupted.abort();
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
  const { speed, drop, seed, ring } = program.opts<Arguments>();
  try {
    const result = await runDemo({
      speed,
      dropPercent: drop,
      ...(seed === undefined ? {} : { seed }),
      ...(ring === undefined ? {} : { ring }),
      signal: interrupted.signal,
    });
    return result.ok ? 0 : 1;
  } catch (error) {
    if (interrupted.signal.aborted) {
      process.stderr.write('interrupted\n');
      return 130;
    }
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  }
}

process.exitCode = await main();
