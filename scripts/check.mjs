// `npm run check`: all checks that need no server, as many at a time as there are processors. Each shows what it printed when it has failed.
// All of them run, so that one run shows all there is to mend; the exit code is 1 when one failed.
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Scripts of package.json; those that take longest first. */
const checks = ['test:unit', 'check:lint', 'check:types', 'check:format', 'check:imports', 'check:size'];

/** Runs one script. Settles with whether it ended with 0. */
function run(name) {
  const since = performance.now();
  const child = spawn('npm', ['run', '--silent', name], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    // Fewer generated cases: `npm test` runs all of them.
    env: { ...process.env, TOPICAST_TEST_QUICK: '1' },
  });
  const output = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => output.push(chunk));
  return new Promise((resolve) => {
    const end = (ok, why = '') => {
      const seconds = ((performance.now() - since) / 1000).toFixed(1);
      console.log(`${ok ? 'ok' : 'FAILED'}  ${name}  ${seconds} s${why}`);
      const text = Buffer.concat(output).toString().trim();
      if (text !== '' && !ok) console.log(`${text}\n`);
      resolve(ok);
    };
    child.once('error', (error) => end(false, `: ${error.message}`));
    child.once('close', (code, signal) => end(code === 0, signal === null ? '' : `: ended by ${signal}`));
  });
}

const left = [...checks];
const failed = [];
async function runNext() {
  for (let name = left.shift(); name !== undefined; name = left.shift()) {
    if (!(await run(name))) failed.push(name);
  }
}
await Promise.all(Array.from({ length: Math.max(2, availableParallelism()) }, runNext));
console.log(failed.length === 0 ? 'all checks passed' : `failed: ${failed.join(', ')}`);
process.exitCode = failed.length === 0 ? 0 : 1;
