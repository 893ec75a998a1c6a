// Builds dist/ from nothing: compiles the sources, copies what is not TypeScript beside the code that reads it, and
// makes the command line runnable. Runs by itself after `npm ci` and at the first `npx topicast` (the `prepare` script).
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleClient } from './bundle-client.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist');

const sourceFolders = ['protocol', 'broker', 'node', 'client', 'bench'];
/** What is read at run time from beside the compiled code: the same path in the sources and in dist/. */
const assetFolders = ['broker/lua', 'node/console', 'bench/data', 'bench/plan', 'bench/fleet/native'];

function compile(outDir) {
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
  const args = [tsc, '-p', join(root, 'tsconfig.build.json'), '--outDir', outDir];
  return (
    spawnSync(process.execPath, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] }).status === 0
  );
}

function copyAssets(outDir) {
  for (const folder of assetFolders.filter((name) => existsSync(join(root, name)))) {
    cpSync(join(root, folder), join(outDir, folder), {
      recursive: true,
      filter: (path) => !/\.(ts|md)$/.test(path),
    });
  }
}

function makeRunnable(outDir) {
  const main = join(outDir, 'node/main.js');
  if (existsSync(main)) chmodSync(main, 0o755);
}

/**
 * Whether dist/ is newer than everything that it is made of. `npx topicast` runs `prepare` at its first call in a checkout, because npm takes
 * the folder for a package to install; building again would cost half a minute there.
 */
function isCurrent() {
  const main = join(dist, 'node/main.js');
  if (!existsSync(main)) return false;
  const builtAt = statSync(main).mtimeMs;
  const inputs = ['package-lock.json', 'tsconfig.json', 'tsconfig.build.json', 'scripts', ...sourceFolders];
  return inputs.every((name) => newestChange(join(root, name)) < builtAt);
}

function newestChange(path) {
  if (!existsSync(path)) return 0;
  const stat = statSync(path);
  if (!stat.isDirectory()) return stat.mtimeMs;
  return Math.max(stat.mtimeMs, ...readdirSync(path).map((name) => newestChange(join(path, name))));
}

/** The client as files that a page loads without a build of its own, beside the modules that bundlers take. */
async function bundle(outDir) {
  for (const { fileName, code } of await bundleClient()) {
    writeFileSync(join(outDir, 'client', fileName), code);
  }
}

// Made aside and swapped in, so that a node that runs from dist/ keeps its files, and a failed build changes nothing.
if (process.argv.includes('--if-stale') && isCurrent()) process.exit();
const staging = join(root, `.build-${process.pid}`);
try {
  mkdirSync(staging);
  if (compile(staging)) {
    copyAssets(staging);
    makeRunnable(staging);
    await bundle(staging);
    rmSync(dist, { recursive: true, force: true });
    renameSync(staging, dist);
  } else {
    console.error('The build failed; dist/ is as it was.');
    process.exitCode = 1;
  }
} finally {
  rmSync(staging, { recursive: true, force: true });
}
