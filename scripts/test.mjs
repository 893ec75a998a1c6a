// `npm test`: builds, runs every vitest project, and prints `N passed, N failed` as its last line.
// Arguments go on to vitest: `npm test -- --project unit -t 'resume'`.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Runs one of Node's scripts in the project folder, showing what it prints. True when it ended with 0. */
function run(script, args) {
  const child = spawnSync(process.execPath, [script, ...args], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  return child.status === 0;
}

/** Counts single tests in vitest's JSON report. A file that failed before any test of it ran counts as one failure. */
function count(report) {
  const brokenFiles = report.testResults.filter(
    (file) => file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
  );
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests + brokenFiles.length,
    skipped: report.numPendingTests + report.numTodoTests,
  };
}

function runTests(extraArgs) {
  const folder = mkdtempSync(join(tmpdir(), 'topicast-test-'));
  const reportFile = join(folder, 'report.json');
  const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs');
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${reportFile}`];
  try {
    const ok = run(vitest, ['run', ...reporters, ...extraArgs]);
    return { ok, ...count(JSON.parse(readFileSync(reportFile, 'utf8'))) };
  } catch (error) {
    console.error(
      `vitest left no readable report: ${error instanceof Error ? error.message : String(error)}`,
    );
    return { ok: false, passed: 0, failed: 0, skipped: 0 };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const built = run(join(root, 'scripts/build.mjs'), []);
const result = built ? runTests(process.argv.slice(2)) : { ok: false, passed: 0, failed: 0, skipped: 0 };
const nothingRan = built && result.passed + result.failed === 0;
if (nothingRan) console.error('No test ran.');

// A build that fails, an error outside of any test and an empty run are failures too, and the last line says so.
const success = result.ok && result.failed === 0 && !nothingRan;
const failed = success ? 0 : Math.max(1, result.failed);
const skipped = result.skipped > 0 ? `, ${result.skipped} skipped` : '';
process.exitCode = success ? 0 : 1;
console.log(`${result.passed} passed, ${failed} failed${skipped}`);
