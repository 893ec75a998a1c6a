import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const require = createRequire(import.meta.url);

/** Of an npm package, from where it is found; undefined when it is not installed. */
export function packageVersion(name: string): string | undefined {
  let folder: string;
  try {
    folder = dirname(require.resolve(name));
  } catch {
    return undefined; // Not there, which is for the caller to tell.
  }
  // A package need not let others see its package.json, so it is not asked for by name.
  for (;;) {
    const version = versionIn(join(folder, 'package.json'));
    if (version !== undefined) return version;
    const above = dirname(folder);
    if (above === folder) return undefined;
    folder = above;
  }
}

/** Folders within a package may have a package.json too, but without a version. */
function versionIn(file: string): string | undefined {
  try {
    return (JSON.parse(readFileSync(file, 'utf8')) as { version?: string }).version;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
