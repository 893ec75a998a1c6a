import { availableParallelism, cpus, release, totalmem, type } from 'node:os';
import type { Machine } from './result.js';

/** The machine that this process runs on: a figure means little without it. */
export function thisMachine(): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryBytes: totalmem(),
    os: `${type()} ${release()}`,
    node: process.version,
  };
}
