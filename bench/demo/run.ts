import { randomBytes, randomInt } from 'node:crypto';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Checker } from './checker.js';
import { startNode } from './node-process.js';
import { replay } from './replay.js';
import { list, LiveLine, number, table, type Output } from './report.js';
import { Progress, settle } from './settle.js';
import { planDrops, readFeed, readUsers } from './traffic.js';
import { codecOf, Fleet } from './users.js';
import type { Verdict } from './verdict.js';

/** Nodes that run already. */
export interface DemoTarget {
  readonly publisherUrl: string;
  /** Users are spread over these, and come back on the next one each time. */
  readonly subscriberUrls: readonly string[];
  /** What the nodes check tokens with, and their API key. */
  readonly jwtSecret: string;
  readonly apiKey: string;
  readonly node: string;
  readonly engine: string;
  /** Rejects when one of the nodes ends. */
  readonly died: Promise<never>;
}

export interface DemoOptions {
  /** Where to run; a node of its own when absent. */
  readonly target?: DemoTarget;
  /** How many times faster than the feed happened (20 by default); `max`: as fast as the node takes it. */
  readonly speed?: number | 'max';
  /** Percent of the users that lose their connection once and come back (20). */
  readonly dropPercent?: number;
  /** Decides who is cut, and when; random by default. */
  readonly seed?: number;
  /** Messages that the demo's own node keeps in memory for each topic; small ones make replay read the store. */
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
 * Connects every user of `bench/data` to a node that it starts, or to those of `target`, replays the feed while some of them lose their connections, and
 * checks what arrived. Nothing that it started is left running, however it ends.
 * @throws Error when the node cannot be started, dies or refuses something; the signal's reason when aborted
 */
export async function runDemo(options: DemoOptions = {}): Promise<DemoResult> {
  const output = options.output ?? process.stdout;
  const seed = options.seed ?? randomInt(2 ** 31);
  options.signal?.throwIfAborted();
  output.write(`seed ${seed}\n`);
  const own = options.target === undefined ? await startOwnNode(options.ring) : undefined;
  const target = options.target ?? own!.target;
  try {
    output.write(`${placesOf(target)} node=${target.node} engine=${target.engine}\n`);
    return await play(target, { ...options, seed, output });
  } catch (error) {
    options.signal?.throwIfAborted();
    // A node that dies cuts its connections first: its own end says more than theirs.
    await Promise.race([target.died, delay(deathMsMax)]);
    throw error;
  } finally {
    await own?.stop();
  }
}

async function startOwnNode(
  ring: number | undefined,
): Promise<{ target: DemoTarget; stop: () => Promise<void> }> {
  const jwtSecret = randomBytes(32).toString('base64url');
  const apiKey = randomBytes(32).toString('base64url');
  const node = await startNode(join(root, 'dist/node/main.js'), {
    TOPICAST_HOST: '127.0.0.1',
    TOPICAST_PORT: '0',
    TOPICAST_JWT_SECRET: jwtSecret,
    TOPICAST_API_KEY: apiKey,
    TOPICAST_CONNECT_RATE: '100000',
    ...(ring === undefined ? {} : { TOPICAST_RING_MESSAGES: String(ring) }),
  });
  const { died, engine, id, url } = node;
  return {
    target: { publisherUrl: url, subscriberUrls: [url], jwtSecret, apiKey, node: id, engine, died },
    stop: () => node.stop(),
  };
}

function placesOf({ publisherUrl, subscriberUrls }: DemoTarget): string {
  const others = subscriberUrls.filter((url) => url !== publisherUrl);
  return others.length === 0 ? publisherUrl : `${publisherUrl} publishes, users on ${others.join(' ')}`;
}

async function play(
  target: DemoTarget,
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
  const fleet = await Fleet.create(users, target.jwtSecret, {
    urls: target.subscriberUrls,
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
      url: target.publisherUrl,
      apiKey: target.apiKey,
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
    const verdict = await Promise.race([work(), target.died, broken]);
    line.stop();
    report(options.output, verdict, faults, notes);
    const ok = verdict.ok && faults.length === 0;
    return {
      ok,
      seed: options.seed,
      node: target.node,
      engine: target.engine,
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
