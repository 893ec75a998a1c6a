#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { processIo } from './cli/io.js';
import { runCli } from './cli/program.js';
import { serve } from './serve.js';

const io = processIo();
const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};
const code = await runCli(process.argv.slice(2), {
  io,
  version: manifest.version,
  serve: (flags) => serve(flags, io),
});
process.exit(code);
