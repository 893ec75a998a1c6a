import { execFileSync, spawnSync, type ExecFileSyncOptions } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';

/** A program on this machine that tests and scenarios start. */
export interface ServerBinary {
  readonly path: string;
  /** As it names itself: `7.0.15`, `2.11.10`, `156.0.8078.114`. */
  readonly version: string;
}

interface Program {
  readonly name: string;
  /** What Debian and Ubuntu call the package. */
  readonly debianPackage: string;
  /** What makes it say its version; `--version` unless given. */
  readonly versionArgs?: readonly string[];
  readonly versionIn: RegExp;
  readonly otherwise: string;
}

/** What is needed to find it. */
type SoughtProgram = Omit<Program, 'debianPackage' | 'otherwise'>;

const redis: Program = {
  name: 'redis-server',
  debianPackage: 'redis-server',
  versionIn: /\bv=(\d+\.\d+\.\d+)/,
  otherwise: 'https://redis.io/docs/latest/operate/oss_and_stack/install/ (7.0 or newer)',
};

const nats: Program = {
  name: 'nats-server',
  debianPackage: 'nats-server',
  versionIn: /\bv(\d+\.\d+\.\d+)/,
  otherwise: '`go install github.com/nats-io/nats-server/v2@v2.11.10`, which puts a newer one into ~/go/bin',
};

const chromium: Program = {
  name: 'chromium',
  debianPackage: 'chromium',
  versionIn: /\b(\d+\.\d+\.\d+\.\d+)\b/,
  otherwise: 'https://www.chromium.org/getting-involved/download-chromium/',
};

const nginx: SoughtProgram = {
  name: 'nginx',
  versionArgs: ['-v'],
  versionIn: /nginx\/(\d+\.\d+\.\d+)/,
};

const centrifugo: SoughtProgram = {
  name: 'centrifugo',
  versionArgs: ['version'],
  versionIn: /\bv?(\d+\.\d+\.\d+)/,
};

/** The newest of each that is here; nothing is installed. */
export const installed = {
  nats: (): ServerBinary | undefined => find(nats).at(-1),
  nginx: (): ServerBinary | undefined => find(nginx).at(-1),
  centrifugo: (): ServerBinary | undefined => find(centrifugo).at(-1),
} as const;

/** The browser of the browser tests; installs Debian's package when there is none and that is possible. */
export function chromiumBrowser(): ServerBinary {
  const [found] = find(chromium);
  return found ?? install(chromium);
}

/** The Redis server to use; installs Debian's package when there is none and that is possible. */
export function redisServer(): ServerBinary {
  const [found] = find(redis);
  return found ?? install(redis);
}

/** Every NATS server found, the oldest first; installs Debian's package when there is none and that is possible. */
export function natsServers(): ServerBinary[] {
  const found = find(nats);
  return found.length > 0 ? found : [install(nats)];
}

/** The NATS server whose version starts with `version` (`2.11`), or the oldest one. */
export function natsServer(version?: string): ServerBinary {
  const found = natsServers();
  const chosen =
    version === undefined ? found[0] : found.find((one) => `${one.version}.`.startsWith(`${version}.`));
  if (chosen !== undefined) return chosen;
  const have = found.map((one) => one.version).join(', ');
  throw new Error(`no nats-server ${version} here (only ${have}); get one with ${nats.otherwise}`);
}

function find(program: SoughtProgram): ServerBinary[] {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  // Servers live in sbin, which is not in everybody's PATH; what Go builds is in neither.
  const all = new Set([
    ...folders,
    '/usr/sbin',
    '/usr/local/bin',
    '/usr/local/sbin',
    join(homedir(), 'go/bin'),
  ]);
  const byVersion = new Map<string, ServerBinary>();
  for (const folder of all) {
    const path = join(folder, program.name);
    const version = isRunnable(path) ? versionOf(path, program) : undefined;
    if (version !== undefined && !byVersion.has(version)) byVersion.set(version, { path, version });
  }
  return [...byVersion.values()].sort((a, b) => a.version.localeCompare(b.version, 'en', { numeric: true }));
}

function isRunnable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false; // Not there, or not for us: either way not a candidate.
  }
}

function versionOf(path: string, program: SoughtProgram): string | undefined {
  const { error, stderr, stdout } = spawnSync(path, program.versionArgs ?? ['--version'], {
    encoding: 'utf8',
    timeout: 10_000,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (error !== undefined) throw error;
  return program.versionIn.exec(`${stdout}${stderr}`)?.[1];
}

function install(program: Program): ServerBinary {
  const aptGet = '/usr/bin/apt-get';
  if (process.getuid?.() !== 0 || !isRunnable(aptGet)) throw new Error(missing(program));
  console.error(`${program.name} is missing: installing the package ${program.debianPackage} with apt-get`);
  try {
    const options: ExecFileSyncOptions = { stdio: ['ignore', 'ignore', 'inherit'], timeout: 240_000 };
    execFileSync(aptGet, ['update', '-qq'], options);
    // RUNLEVEL=1 keeps the package from starting its own server.
    execFileSync(aptGet, ['install', '-y', '-qq', '--no-install-recommends', program.debianPackage], {
      ...options,
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' },
    });
  } catch (cause) {
    throw new Error(`apt-get failed; ${missing(program)}`, { cause });
  }
  const [found] = find(program);
  if (found === undefined) throw new Error(missing(program));
  return found;
}

function missing(program: Program): string {
  return `${program.name} was not found in PATH, /usr/sbin, /usr/local or ~/go/bin: install it with \`apt-get install ${program.debianPackage}\` or see ${program.otherwise}`;
}
