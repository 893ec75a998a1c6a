import { randomBytes } from 'node:crypto';
import { Command, CommanderError, InvalidArgumentError } from 'commander';
import { runDemo } from '../demo/run.js';
import { startCluster, type RunningCluster } from './cluster.js';

/** Exit codes: 0 stopped or everything arrived as it should, 1 not, 2 wrong usage, 130 a demo that was interrupted. */

interface Arguments {
  readonly port: number;
  readonly nodes: number;
  readonly demo?: true;
  readonly speed: number | 'max';
  readonly drop: number;
  readonly seed?: number;
}

function whole(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Expected a whole number from ${min} to ${max}.`);
  };
}

function speed(text: string): number | 'max' {
  if (text === 'max') return text;
  const value = Number(text);
  if (text.trim() !== '' && value > 0 && Number.isFinite(value)) return value;
  throw new InvalidArgumentError('Expected a number above 0, or max.');
}

const program = new Command('cluster')
  .description(
    'Runs a whole cluster on this machine: 3 NATS servers with JetStream, a Redis Cluster of 6 and 3 nodes. Without a key, ' +
      'open to this machine only. Ctrl-C stops everything.',
  )
  .option(
    '--port <first>',
    'the nodes listen on this port and the next ones; 0: any free ones',
    whole(0, 65_000),
    8081,
  )
  .option('--nodes <n>', 'how many nodes', whole(1, 16), 3)
  .option(
    '--demo',
    'replay the feed: published on the first node, received on the others, everything checked',
  )
  .option('--speed <times>', 'of the demo: how many times faster than it happened, or max', speed, 20)
  .option(
    '--drop <percent>',
    'of the demo: users that lose their connection and come back',
    whole(0, 100),
    20,
  )
  .option(
    '--seed <n>',
    'of the demo: decides who is cut and when; random by default, printed',
    whole(0, 2 ** 31 - 1),
  )
  .exitOverride();

function ports({ nodes, port }: Arguments): number[] {
  return Array.from({ length: nodes }, (_, i) => (port === 0 ? 0 : port + i));
}

function usage({ nats, nodes, redis }: RunningCluster): string {
  const [first, second = nodes[0]] = nodes;
  const list = nodes.map(({ id, url }) => `  ${url}  node=${id}`);
  return [
    '',
    'nodes, each as good as the others:',
    ...list,
    `NATS   ${nats.urls.join(' ')} (monitoring ${nats.nodes.map(({ monitor }) => monitor).join(' ')})`,
    `Redis  ${redis.urls.join(' ')}`,
    '',
    'No token is needed from this machine. In two other terminals, here:',
    `  node dist/node/main.js sub coupon.food 'item.>' --url ${first?.url}`,
    `  node dist/node/main.js pub coupon.food '{"off":20}' --url ${second?.url}`,
    `and see  curl ${first?.url}/v1/nodes`,
    '',
    'Ctrl-C stops everything.',
    '',
  ].join('\n');
}

async function serve(options: Arguments, signal: AbortSignal): Promise<number> {
  const cluster = await startCluster({
    ports: ports(options),
    env: { TOPICAST_LOG_LEVEL: 'warn', TOPICAST_DRAIN_SEC: '1' },
    progress: (text) => console.log(text),
    signal,
  });
  try {
    process.stdout.write(usage(cluster));
    const stopped = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    if (!signal.aborted) await Promise.race([stopped, cluster.died]);
    console.log('stopping');
    return 0;
  } finally {
    await cluster.stop();
  }
}

async function demo(options: Arguments, signal: AbortSignal): Promise<number> {
  const jwtSecret = randomBytes(32).toString('base64url');
  const apiKey = randomBytes(32).toString('base64url');
  const cluster = await startCluster({
    ports: ports({ ...options, port: 0 }),
    env: {
      TOPICAST_JWT_SECRET: jwtSecret,
      TOPICAST_API_KEY: apiKey,
      TOPICAST_CONNECT_RATE: '100000',
      TOPICAST_LOG_LEVEL: 'warn',
      TOPICAST_DRAIN_SEC: '1',
    },
    progress: (text) => console.log(text),
    signal,
  });
  try {
    const { died, nodes } = cluster;
    const [publisher, ...others] = nodes.map(({ url }) => url);
    const result = await runDemo({
      speed: options.speed,
      dropPercent: options.drop,
      ...(options.seed === undefined ? {} : { seed: options.seed }),
      signal,
      target: {
        publisherUrl: publisher!,
        subscriberUrls: others.length > 0 ? others : [publisher!],
        ...{ jwtSecret, apiKey, died },
        node: nodes.map(({ id }) => id).join(','),
        engine: nodes[0]!.engine,
      },
    });
    return result.ok ? 0 : 1;
  } finally {
    await cluster.stop();
  }
}

async function main(): Promise<number> {
  try {
    program.parse();
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    throw error;
  }
  const interrupted = new AbortController();
  const interrupt = () => interrupted.abort(new Error('interrupted'));
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
  const options = program.opts<Arguments>();
  try {
    return await (options.demo === true ? demo : serve)(options, interrupted.signal);
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
