import type { OutputConfiguration } from 'commander';
import { oneLine } from './errors.js';
import type { CliIo } from './io.js';

/** Where a tree of commands writes: help to standard output, what was wrong with the usage as one line to standard error. */
export function commandOutput({ stderr, stdout }: CliIo): OutputConfiguration {
  return {
    writeOut: (text) => void stdout.write(text),
    writeErr: (text) => void stderr.write(text),
    outputError: (text, write) => write(`${oneLine(text)}\n`),
  };
}
