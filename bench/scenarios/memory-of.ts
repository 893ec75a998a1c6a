import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { builtFile } from '../built.js';
import { rssBytesOf } from '../fleet/usage.js';
import type { NodeOptions, ScenarioContext } from './scenario.js';
import { pause, sum, untilSteady } from './waiting.js';

/** Of some processes together, in bytes. */
export interface MemoryUse {
  /** As the system counts it, once it has come to rest, garbage that V8 keeps included. */
  readonly rss: number;
  /** The same after a collection: what comes later finds no room there that garbage has left. */
  readonly rssCollected: number;
  /** Of JavaScript objects, after a collection. */
  readonly heap: number;
}

export type MemoryEach = Pick<MemoryUse, 'rss' | 'heap'>;

/** Reads the memory of nodes that were started with its `options`. */
export interface MemoryReader {
  readonly options: Pick<Required<NodeOptions>, 'env' | 'flags'>;
  /** Waits until RSS has been steady for so many seconds. @throws Error when it does not come to rest */
  read(pids: readonly number[], steadySec: number): Promise<MemoryUse>;
}

const collectSecMax = 30;
/** V8 gives back pages beside the program. */
const givenBackSec = 2;

export function memoryReader(context: ScenarioContext): MemoryReader {
  const dir = mkdtempSync(join(tmpdir(), 'topicast-heap-'));
  context.defer(() => rmSync(dir, { recursive: true, force: true }));
  const collect = async (pid: number): Promise<number> => {
    const path = join(dir, `${pid}.json`);
    rmSync(path, { force: true });
    process.kill(pid, 'SIGUSR2');
    for (const until = performance.now() + collectSecMax * 1000; !existsSync(path);) {
      if (performance.now() > until) throw new Error(`process ${pid} does not tell of its heap`);
      await pause(0.02, context.signal);
    }
    return (JSON.parse(readFileSync(path, 'utf8')) as { heapUsed: number }).heapUsed;
  };
  return {
    options: {
      env: { BENCH_HEAP_DIR: dir },
      flags: ['--expose-gc', `--import=${builtFile('bench/probe/heap-probe.js')}`],
    },
    async read(pids, steadySec) {
      const rssOf = (): number => sum(pids.map(rssBytesOf));
      const rss = await untilSteady(rssOf, steadySec, context.signal);
      const heap = sum(await Promise.all(pids.map(collect)));
      return { rss, rssCollected: await untilSteady(rssOf, givenBackSec, context.signal), heap };
    },
  };
}

/** What each of `count` more has taken. Both times after a collection: what garbage lies about at a moment is of thousands of sessions, either way. */
export function memoryEach(before: MemoryUse, after: MemoryUse, count: number): MemoryEach {
  return {
    rss: (after.rssCollected - before.rssCollected) / count,
    heap: (after.heap - before.heap) / count,
  };
}
