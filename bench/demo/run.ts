import { randomBytes, randomInt } from 'node:crypto';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Checker } from './checker.js';
import { startNode, type RunningNode } from './node-process.js';
import { replay } from './replay.js';
import { list, LiveLine, number, table, type Output } from './report.js';
import { Progress, settle } from './settle.js';
import { planDrops, readFeed, readUsers } from './traffic.js';
import { codecOf, Fleet } from './users.js';
import type { Verdict } from './verdict.js';

export interface DemoOptions {
  /** How many times faster than the feed happened (20 by default); `max`: as fast as the node takes it. */
  readonly speed?: number | 'max';
  /** Percent of the users that lose their connection once and come back (20). */
  readonly dropPercent?: number;
  /** Decides who is cut, and when; random by default. */
  readonly seed?: number;
  /** Messages that the node keeps in memory for each topic; small ones make replay read the store. */
  readonly ring?: number;
  /** The run ends when what is missing has not come for this long (30,000 ms). */
  readonly stallMs?: number;
  readonly output?: Output;
  readonly signal?: AbortSignal;
}

export interface DemoResult {
  readonly ok: boolean;
  readonly seed: number;
  readonly node: string;
  readonly engine: string;
  /** How many users were cut and came back. */
  readonly dropped: number;
  readonly verdict: Verdict;
  /** Promises that the node was seen to break, apart from the counts. */
  readonly faults: readonly string[];
  /** What happened besides, such as connections that the node closed. */
  readonly notes: readonly string[];
}

const root = projectRoot();
/** How long after a failed request the end of the node counts as its cause. */
const deathMsMax = 1_000;

/**
 * Starts a node, connects every user of `bench/data`, replays the feed while some of them lose their connections, and checks what arrived.
 * Nothing is left running, however it ends.
 * @throws Error when the node cannot be started, dies or refuses something; the signal's reason when aborted
 */
export async function runDemo(options: DemoOptions = {}): Promise<DemoResult> {
  const output = options.output ?? process.stdout;
  const seed = options.seed ?? randomInt(2 ** 31);
  const secrets = {
    jwt: randomBytes(32).toString('base64url'),
    apiKey: randomBytes(32).toString('base64url'),
  };
  options.signal?.throwIfAborted();
  output.write(`seed ${seed}\n`);
  const node = await startNode(join(root, 'dist/node/main.js'), {
    TOPICAST_HOST: '127.0.0.1',
    TOPICAST_PORT: '0',
    TOPICAST_JWT_SECRET: secrets.jwt,
    TOPICAST_API_KEY: secrets.apiKey,
    TOPICAST_CONNECT_RATE: '100000',
    ...(options.ring === undefined ? {} : { TOPICAST_RING_MESSAGES: String(options.ring) }),
  });
  try {
    output.write(`${node.url} node=${node.id} engine=${node.engine}\n`);
    return await play(node, secrets, { ...options, seed, output });
  } catch (error) {
    options.signal?.throwIfAborted();
    // A node that dies cuts its connections first: its own end says more than theirs.
    await Promise.race([node.died, delay(deathMsMax)]);
    throw error;
  } finally {
    await node.stop();
  }
}

async function play(
  node: RunningNode,
  secrets: { readonly jwt: string; readonly apiKey: string },
  options: DemoOptions & { readonly seed: number; readonly output: Output },
): Promise<DemoResult> {
  const users = readUsers(join(root, 'bench/data/users.ndjson'));
  const feed = readFeed(join(root, 'bench/data/feed.ndjson'));
  const drops = planDrops(users, feed.length, options.dropPercent ?? 20, options.seed);
  const checker = new Checker(users, feed, codecOf);
  const progress = new Progress();
  const faults: string[] = [];
  const notes: string[] = [];
  const over = new AbortController();
  const signal = options.signal === undefined ? over.signal : AbortSignal.any([over.signal, options.signal]);
  const broken = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error));
  });
  const fleet = await Fleet.create(users, secrets.jwt, {
    url: node.url,
    checker,
    progress: () => progress.made(),
    note: (text) => notes.push(text),
    fault: (text) => faults.push(text),
    fail: (error) => over.abort(error),
  });
  let published = 0;
  const line = new LiveLine(options.output, () => liveText(fleet.connected, published, checker));
  const work = async (): Promise<Verdict> => {
    await fleet.connect(signal);
    await replay(feed, {
      url: node.url,
      apiKey: secrets.apiKey,
      speed: options.speed ?? 20,
      stops: new Set(drops.flatMap(({ cut, back }) => [cut, back])),
      before: (index) => {
        for (const { user, cut } of drops) if (cut === index) fleet.cut(user);
        for (const { user, back } of drops) if (back === index) fleet.comeBack(user);
      },
      publishing: (index) => checker.publishing(index, performance.now()),
      published: (count) => (published = count),
      signal,
    });
    await fleet.allBack();
    return await settle(fleet, checker, progress, options.stallMs ?? 30_000);
  };
  try {
    const verdict = await Promise.race([work(), node.died, broken]);
    line.stop();
    report(options.output, verdict, faults, notes);
    const ok = verdict.ok && faults.length === 0;
    return {
      ok,
      seed: options.seed,
      node: node.id,
      engine: node.engine,
      dropped: drops.length,
      verdict,
      faults,
      notes,
    };
  } finally {
    line.stop();
    fleet.close();
    over.abort(new Error('the run is over'));
  }
}

function liveText(connected: number, published: number, { arrived }: Checker): string {
  const delivered = number(arrived.durable + arrived.live);
  const direct = `${number(arrived.confirmed)} direct acknowledged`;
  return `${number(connected)} connected · ${number(published)} published · ${delivered} delivered · ${direct}`;
}

function report(output: Output, verdict: Verdict, faults: readonly string[], notes: readonly string[]): void {
  output.write(`\n${table(verdict.counts)}\n\n`);
  if (verdict.redelivered > 0) {
    output.write(
      `${number(verdict.redelivered)} direct messages came again: their acknowledgement was cut off\n`,
    );
  }
  output.write(list('besides:', notes));
  output.write(list('promises not kept:', faults));
  output.write(list('not as it should be:', verdict.faults));
  output.write(verdict.ok && faults.length === 0 ? 'OK\n' : 'NOT OK\n');
}

/** The nearest folder above this file that has a package.json: two up from the source, three from the build. */
function projectRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) {
    const above = dirname(folder);
    if (above === folder) throw new Error('no package.json above the demo');
    folder = above;
  }
  return folder;
}
