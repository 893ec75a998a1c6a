import { readFile } from 'node:fs/promises';
import { parseResult, type BenchResult } from '../result/result.js';
import { save } from '../result/save.js';
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
  try {
    await save(out, page);
  } catch (cause) {
    throw new Error(`cannot write ${out}: ${messageOf(cause)}`, { cause });
  }
}

async function readResult(file: string): Promise<BenchResult> {
  try {
    return parseResult(await readFile(file, 'utf8'));
  } catch (cause) {
    throw new NotAResult(`${file}: ${messageOf(cause)}`, { cause });
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
