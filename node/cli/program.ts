import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { UsageError, describe, exitCodes, oneLine } from './errors.js';
import { parseTarget, type Target } from './http.js';
import { isBrokenPipe, writeLine, type CliIo } from './io.js';
import { commandOutput } from './output.js';
import { addPlan } from './plan.js';
import { pub, push } from './publish.js';
import { serveOptions } from './serve-options.js';
import { sub } from './sub.js';
import { mintToken, parseDurationSec } from './token.js';

export interface CliParts {
  readonly io: CliIo;
  readonly version: string;
  /**
   * Runs a node until it was told to stop. `flags` holds what was given on the command line only, by camel-case name, as
   * text (`printConfig` is true). A `UsageError` from it ends with exit code 2, any other error with 1.
   */
  readonly serve: (flags: Record<string, unknown>) => Promise<void>;
}

interface TargetFlags {
  readonly url?: string;
  readonly token?: string;
}

/**
 * Runs one command. Resolves to the exit code; never rejects. What went wrong is one line on standard error. A reader
 * of standard output that left (`| head -1`) is not a failure.
 */
export async function runCli(args: readonly string[], parts: CliParts): Promise<number> {
  const { io } = parts;
  let outputFault: unknown;
  io.stdout.on('error', (error) => (outputFault = error));
  try {
    await createProgram(parts).parseAsync([...args], { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.fine : exitCodes.usage;
    const message = error instanceof Error && error.message !== '' ? error.message : describe(error);
    await writeLine(io.stderr, `error: ${oneLine(message)}`);
    return error instanceof UsageError ? exitCodes.usage : exitCodes.failed;
  }
  if (outputFault === undefined || isBrokenPipe(outputFault)) return exitCodes.fine;
  await writeLine(io.stderr, `error: cannot write the result: ${describe(outputFault)}`);
  return exitCodes.failed;
}

/** The tree of commands. Parsing throws `CommanderError` instead of ending the process. */
export function createProgram(parts: CliParts): Command {
  const { io } = parts;
  const program = new Command('topicast')
    .description('Topic subscriptions over WebSocket: run a node, subscribe, publish, push, make tokens.')
    .version(parts.version)
    .exitOverride()
    .configureOutput(commandOutput(io))
    .addHelpText(
      'after',
      examples([
        'topicast serve',
        "topicast sub 'coupon.>' item.1042",
        'topicast pub item.1042 \'{"price":9.9}\'',
      ]) + '\n\nExit codes: 0 fine, 1 failed, 2 wrong usage.',
    );
  addServe(program, parts);
  addSub(program, parts);
  addPub(program, parts);
  addPush(program, parts);
  addToken(program, parts);
  addBench(program, parts);
  addPlan(program, parts);
  return program;
}

function addServe(program: Command, { serve }: CliParts): void {
  const command = program
    .command('serve')
    .description('Run a node. Settings come from a file, then the environment, then these flags.')
    .addHelpText(
      'after',
      examples([
        'topicast serve --port 0',
        'topicast serve --nats-url nats://10.0.0.1:4222 --redis-url redis://10.0.0.2:6379',
        'topicast serve --config topicast.json --print-config',
      ]),
    )
    .action((flags: Record<string, unknown>) => serve(flags));
  for (const option of serveOptions()) command.addOption(option);
}

function addSub(program: Command, { io }: CliParts): void {
  withTarget(program.command('sub'))
    .description(
      'Print the messages of topics and patterns, one JSON text a line, and reconnect when the line is cut.',
    )
    .argument('<topic...>', 'topic, pattern, or topic@epoch:offset to resume after a position')
    .option('--last <n>', 'begin with the last n stored messages of each topic', parseCount)
    .option('--user <name>', 'who to be on a node that checks no tokens')
    .addHelpText(
      'after',
      examples([
        'topicast sub item.1042',
        "topicast sub --last 10 'coupon.food.>'",
        'topicast sub item.1042@k3f9:1037 | jq .data',
      ]),
    )
    .action((topics: string[], flags: TargetFlags & { last?: number; user?: string }) => {
      const { last, user } = flags;
      return sub(io, topics, {
        target: targetOf(io, flags),
        ...(last === undefined ? {} : { last }),
        ...(user === undefined ? {} : { user }),
      });
    });
}

function addPub(program: Command, { io }: CliParts): void {
  withTarget(program.command('pub'))
    .description("Publish one message and print the server's answer.")
    .argument('<topic>', 'where to')
    .argument('[json]', 'the message; - or none: read from standard input')
    .option('--id <id>', 'publishing again with the same id within two minutes changes nothing')
    .addHelpText(
      'after',
      examples(['topicast pub item.1042 \'{"price":9.9}\'', 'topicast pub coupon.food - < coupon.json']),
    )
    .action((topic: string, json: string | undefined, flags: TargetFlags & { id?: string }) =>
      pub(io, topic, json, {
        target: targetOf(io, flags),
        ...(flags.id === undefined ? {} : { id: flags.id }),
      }),
    );
}

function addPush(program: Command, { io }: CliParts): void {
  withTarget(program.command('push'))
    .description("Send a direct message to one user and print the server's answer.")
    .argument('<user>', 'user id')
    .argument('<json>', 'the message; -: read from standard input')
    .option('--no-queue', 'only to the sessions that are connected now')
    .option('--ttl <time>', 'forget it when it was not fetched within (30s, 15m, 1h, 7d)', parseTtl)
    .addHelpText(
      'after',
      examples([
        'topicast push alice \'{"hello":1}\'',
        'topicast push --ttl 1h alice \'"your coupon ends today"\'',
      ]),
    )
    .action((user: string, json: string, flags: TargetFlags & { queue: boolean; ttl?: number }) =>
      push(io, user, json, {
        target: targetOf(io, flags),
        queue: flags.queue,
        ...(flags.ttl === undefined ? {} : { ttlSec: flags.ttl }),
      }),
    );
}

interface TokenFlags {
  readonly sub: string;
  readonly canSub?: string[];
  readonly canPub?: string[];
  readonly canPush?: string[];
  readonly topics?: string[];
  readonly admin?: boolean;
  readonly ttl: number;
  readonly secret?: string;
}

function addToken(program: Command, { io }: CliParts): void {
  program
    .command('token')
    .description('Make a token (JWT, HS256) for a node that knows the same secret, and print it.')
    .requiredOption('--sub <user>', 'whom it is for')
    .option('--can-sub <patterns...>', "what may be subscribed to; '>' is everything")
    .option('--can-pub <patterns...>', "what may be published to; '>' is everything")
    .option('--can-push <users...>', "who may be pushed to; '*' is everyone")
    .option('--admin', 'may see and close sessions')
    .option('--topics <topics...>', 'subscribed at every connect without asking')
    .addOption(
      new Option('--ttl <time>', 'how long it is valid (30s, 15m, 1h, 7d)')
        .argParser(parseTtl)
        .default(3600, '1h'),
    )
    .option('--secret <secret>', 'else TOPICAST_JWT_SECRET')
    .addHelpText(
      'after',
      examples([
        "topicast token --sub alice --can-sub 'coupon.>' 'item.*'",
        "topicast token --sub shop --can-pub '>' --can-push '*' --ttl 7d",
      ]),
    )
    .action(async ({ secret, ttl, ...grants }: TokenFlags) => {
      const token = await mintToken({
        ...grants,
        ttlSec: ttl,
        secret: secret ?? io.env['TOPICAST_JWT_SECRET'] ?? '',
      });
      await writeLine(io.stdout, token);
    });
}

/** It has a tree of commands of its own, which is loaded when it is wanted: nobody else needs the load generator. */
function addBench(program: Command, parts: CliParts): void {
  program
    .command('bench')
    .description('Measure a scenario; alone: list them.')
    .argument('[scenario and options...]')
    .allowUnknownOption()
    .helpOption(false)
    .action(async (args: string[]) => (await import('./bench.js')).bench(args, parts));
}

function withTarget(command: Command): Command {
  return command
    .option('--url <url>', 'address of a node; else TOPICAST_URL (default: http://127.0.0.1:8080)')
    .option('--token <token>', 'JWT or API key; else TOPICAST_TOKEN');
}

function targetOf(io: CliIo, flags: TargetFlags): Target {
  return parseTarget(
    flags.url ?? io.env['TOPICAST_URL'] ?? 'http://127.0.0.1:8080',
    flags.token ?? io.env['TOPICAST_TOKEN'],
  );
}

function parseCount(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new InvalidArgumentError('expected a whole number from 1.');
  return Number(text);
}

function parseTtl(text: string): number {
  const seconds = parseDurationSec(text);
  if (seconds === undefined) throw new InvalidArgumentError('expected a time such as 30s, 15m, 1h or 7d.');
  return seconds;
}

function examples(lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}`;
}
