import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Loaded into a node before it starts (`--import`): at SIGUSR2 it collects garbage and writes what is in use to `<BENCH_HEAP_DIR>/<pid>.json`. */
const dir = process.env['BENCH_HEAP_DIR'] ?? '';
const path = join(dir, `${process.pid}.json`);

process.on('SIGUSR2', () => {
  const { gc } = globalThis;
  // Twice, since what was finalized by one collection is freed by the next.
  gc?.();
  gc?.();
  writeFileSync(`${path}.new`, JSON.stringify({ heapUsed: process.memoryUsage().heapUsed }));
  // Whoever waits for the file sees all of it.
  renameSync(`${path}.new`, path);
});
