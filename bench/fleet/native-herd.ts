import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { builtFile } from '../built.js';
import type { HerdProgram } from './herd-process.js';

/** What to look for, in this order. */
const compilers = ['cc', 'gcc', 'clang'];
const flags = ['-O2', '-Wall', '-Wextra'];
const run = promisify(execFile);

export interface NativeHerdOptions {
  /** Where the program is kept; the user's cache folder unless given. */
  readonly folder?: string;
  /** Where compilers are looked for; that of this process unless given. */
  readonly path?: string;
}

/**
 * A process of client sockets in C, for `FleetOptions.program`: a socket costs it 40 bytes besides what the kernel needs, where the one that is
 * shipped needs 3.9 KB. It is compiled when it is asked for the first time, and kept by what it was made of.
 * @throws Error that says what to install, or what the compiler said
 */
export async function nativeHerd(options: NativeHerdOptions = {}): Promise<HerdProgram> {
  if (process.platform !== 'linux') throw new Error('the native herd runs on Linux only (it uses epoll)');
  const sources = builtFile('bench/fleet/native');
  const folder = options.folder ?? cacheFolder();
  const program = join(folder, `herd-${hashOf(sources)}`);
  if (existsSync(program)) return { command: program, args: [] };
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  // Made aside and moved there, so that nobody starts half a program.
  const made = `${program}.${process.pid}`;
  try {
    await compile(join(sources, 'herd.c'), made, options.path);
    renameSync(made, program);
  } finally {
    rmSync(made, { force: true });
  }
  return { command: program, args: [] };
}

async function compile(source: string, into: string, path = process.env['PATH'] ?? ''): Promise<void> {
  for (const compiler of compilers) {
    try {
      await run(compiler, [...flags, '-o', into, source], { env: { ...process.env, PATH: path } });
      return;
    } catch (error) {
      if (isMissing(error)) continue;
      throw new Error(`${compiler} cannot compile ${source}: ${messageOf(error)}`, { cause: error });
    }
  }
  throw new Error(
    `a C compiler is needed for this many sockets, and none of ${compilers.join(', ')} was found in PATH: ` +
      'install one with `apt-get install gcc libc6-dev` (Debian, Ubuntu), `dnf install gcc` (Fedora) or `apk add gcc musl-dev` (Alpine)',
  );
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}

function messageOf(error: unknown): string {
  const { stderr } = error as { readonly stderr?: string };
  return stderr === undefined || stderr === '' ? String(error) : stderr.trimEnd();
}

function hashOf(folder: string): string {
  const hash = createHash('sha256').update(flags.join(' '));
  for (const name of readdirSync(folder).sort()) hash.update(name).update(readFileSync(join(folder, name)));
  return hash.digest('hex').slice(0, 16);
}

/** Of the user alone: a folder that others may write to is no place for a program. */
function cacheFolder(): string {
  const base = process.env['XDG_CACHE_HOME'];
  return join(base === undefined || base === '' ? join(homedir(), '.cache') : base, 'topicast');
}
