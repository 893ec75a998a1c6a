import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Node } from '../../node/compose.js';
import { loadConfig, type Config } from '../../node/config.js';
import { createLogger } from '../../node/log.js';
import { startWorkers, workerConfig } from '../../node/workers.js';
import { eventually } from '../support/signal.js';

const entry = fileURLToPath(new URL('../support/worker.mjs', import.meta.url));
const log = createLogger('silent');
const base = loadConfig({ env: { TOPICAST_NATS_URL: 'nats://127.0.0.1:1', TOPICAST_WORKERS: '3' } });

let folder = '';
let running: Node | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'topicast-workers-'));
});
afterEach(async () => {
  await running?.stop();
  running = undefined;
  rmSync(folder, { recursive: true });
});

/** The settings of a test, whose workers note what happens in a file. */
function settings(change: Partial<Config> = {}): Config {
  return { ...base, nodeName: 'shop', port: 0, prefix: join(folder, 'notes'), ...change };
}

interface Note {
  readonly what: string;
  readonly number: number;
  readonly name: string;
  readonly port: number;
  readonly pid: number;
}

function notes(): Note[] {
  const file = join(folder, 'notes');
  const lines = existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
  return lines.map((line) => {
    const [what = '', number, name = '', port, pid] = line.split(' ');
    return { what, number: Number(number), name, port: Number(port), pid: Number(pid) };
  });
}

const noted = (what: string): Note[] => notes().filter((note) => note.what === what);
const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    // ESRCH: it has gone.
    return false;
  }
};

describe('workers', () => {
  it('start together on one port, and are named after their number', async () => {
    running = await startWorkers(settings(), log, { entry });
    const started = noted('start').sort((a, b) => a.number - b.number);
    expect(started.map(({ name }) => name)).toEqual(['shop-w1', 'shop-w2', 'shop-w3']);
    const [port, ...others] = new Set(started.map((note) => note.port));
    expect([others, port! > 0]).toEqual([[], true]);
    expect(running.url).toBe(`http://h:${port}`);
    expect(running.id).toBe(`shop-w1-${started[0]!.pid}`);
  });

  it('are told to stop, and are gone when that is done', async () => {
    const workers = await startWorkers(settings(), log, { entry });
    await workers.stop();
    expect(
      noted('stop')
        .map(({ number }) => number)
        .sort(),
    ).toEqual([1, 2, 3]);
    expect(noted('start').filter(({ pid }) => isRunning(pid))).toEqual([]);
  });

  it('are started again when they end, the others untouched', async () => {
    running = await startWorkers(settings({ nodeName: 'crashing' }), log, { entry, restartMs: 1 });
    await eventually('worker 2 runs again', () => Promise.resolve(noted('start').length === 4));
    expect(
      noted('start')
        .map(({ number }) => number)
        .sort(),
    ).toEqual([1, 2, 2, 3]);
    const [first, second] = noted('start').filter(({ number }) => number === 2);
    expect(second!.port).toBe(first!.port);
    await running.stop();
    running = undefined;
    expect(noted('start').filter(({ pid }) => isRunning(pid))).toEqual([]);
    expect(noted('start')).toHaveLength(4);
  });

  it('fail together, with what the one that could not start said', async () => {
    await expect(startWorkers(settings({ nodeName: 'broken' }), log, { entry })).rejects.toThrow(
      /^worker \d could not start: no room on this machine$/,
    );
    expect(noted('start').filter(({ pid }) => isRunning(pid))).toEqual([]);
  });

  it('do not join somebody else on a port', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const address = other.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    try {
      await expect(startWorkers(settings({ port }), log, { entry })).rejects.toThrow(
        `cannot listen on 127.0.0.1:${port}`,
      );
      expect(notes()).toEqual([]);
    } finally {
      other.close();
    }
  });
});

describe('the settings of a worker', () => {
  it('keep its name within bounds, and give each its own metrics port', () => {
    const long = workerConfig(settings({ nodeName: 'x'.repeat(64), metricsPort: 9000 }), 12);
    expect(long.nodeName).toBe(`${'x'.repeat(60)}-w12`);
    expect(long.metricsPort).toBe(9011);
    expect(workerConfig(settings({ metricsPort: 0 }), 3).metricsPort).toBe(0);
    expect(workerConfig(settings(), 1)).not.toHaveProperty('metricsPort');
  });
});
