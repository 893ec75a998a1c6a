import { defineConfig, type TestProjectConfiguration } from 'vitest/config';

const sec = 1000;

/** Tests that touch nothing outside their own process: files run side by side. */
function inProcess(name: string, timeoutSec: number): TestProjectConfiguration {
  return {
    test: {
      name,
      include: [`test/${name}/**/*.test.ts`],
      testTimeout: timeoutSec * sec,
      hookTimeout: timeoutSec * sec,
      // Otherwise one processor would be left idle: on two, files would run one after the other.
      maxWorkers: '100%',
      sequence: { groupOrder: 0 },
    },
  };
}

/** Tests that start real processes and servers: one file at a time, so they do not starve each other of CPU. */
function withProcesses(name: string, timeoutSec: number, groupOrder: number): TestProjectConfiguration {
  return {
    test: {
      name,
      include: [`test/${name}/**/*.test.ts`],
      testTimeout: timeoutSec * sec,
      hookTimeout: timeoutSec * sec,
      fileParallelism: false,
      sequence: { groupOrder },
    },
  };
}

export default defineConfig({
  test: {
    projects: [
      inProcess('unit', 10),
      inProcess('property', 120),
      inProcess('conformance', 60),
      withProcesses('integration', 60, 1),
      withProcesses('e2e', 240, 2),
      withProcesses('chaos', 240, 3),
    ],
    passWithNoTests: false,
    allowOnly: false,
  },
});
