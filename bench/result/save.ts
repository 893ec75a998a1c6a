import { mkdir, open, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

/** Writes a file, and the folders above it that are missing. @throws Error when that is not possible */
export async function save(file: string, text: string): Promise<void> {
  await makeFolder(dirname(file));
  await writeFile(file, text);
}

/** Makes the folders, and finds out whether the file can be written; leaves what is in it alone. @throws Error when it cannot */
export async function checkSaves(file: string): Promise<void> {
  await makeFolder(dirname(file));
  const isNew = !(await exists(file));
  await (await open(file, 'a')).close();
  if (isNew) await rm(file);
}

/** Not `mkdir` with `recursive`: that of Node 20 tries for ever in a folder that takes none, such as `/proc`. */
async function makeFolder(folder: string): Promise<void> {
  const missing: string[] = [];
  for (let at = resolve(folder); !(await exists(at)); at = dirname(at)) missing.unshift(at);
  for (const one of missing) {
    try {
      await mkdir(one);
    } catch (error) {
      // Somebody else was faster.
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    }
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch {
    return false; // What cannot be seen has to be made, which then says why it cannot be.
  }
}
