import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { parseResult, type BenchResult } from '../result/result.js';
import { reportHtml } from './report.js';

/** A file that cannot be taken for the result of a scenario. Its message names it. */
export class NotAResult extends Error {
  override readonly name = 'NotAResult';
}

/**
 * Reads results that scenarios have written, and writes the page of them to `out`, whose folder is made.
 *
 * @throws NotAResult when a file cannot be read or is something else, Error when the page cannot be made or written
 */
export async function runReport(files: readonly string[], out: string): Promise<void> {
  const page = await reportHtml(await Promise.all(files.map(readResult)));
  await mkdir(dirname(out), { recursive: true });
  await writeFile(out, page);
}

async function readResult(file: string): Promise<BenchResult> {
  try {
    return parseResult(await readFile(file, 'utf8'));
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new NotAResult(`${file}: ${why}`, { cause });
  }
}
