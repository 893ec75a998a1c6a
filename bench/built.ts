import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * The path of a file of the build, such as `node/main.js`. The same from the build itself and from the sources, which tests run: Node.js 20 cannot
 * start a TypeScript file.
 */
export function builtFile(path: string): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) {
    const above = dirname(folder);
    if (above === folder) throw new Error('no package.json above the bench');
    folder = above;
  }
  return join(folder, 'dist', path);
}
