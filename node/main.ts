#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { processIo } from './cli/io.js';
import { runCli } from './cli/program.js';

const io = processIo();
const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};
const code = await runCli(process.argv.slice(2), {
  io,
  version: manifest.version,
  // Only a node loads µWebSockets, so that the other commands run where it cannot be loaded.
  serve: async (flags) => (await import('./serve.js')).serve(flags, io),
});
process.exit(code);
