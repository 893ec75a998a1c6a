import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  endServer,
  freePorts,
  removeFolder,
  runServer,
  temporaryFolder,
  untilServers,
} from './server-process.js';
import type { ServerBinary } from './binaries.js';

export interface NginxServer {
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
  /** The master and its workers. */
  readonly pids: readonly number[];
  stop(): Promise<void>;
}

export interface NginxSettings {
  readonly binary: ServerBinary;
  /** Files that are loaded. */
  readonly modules: readonly string[];
  readonly connectionsMax: number;
  /** Of the `server` block. */
  readonly server: string;
}

/** The folders of its own files, which would else be those of the system's nginx. */
const temporaryPaths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];

/** One nginx with one worker. @throws Error with what it wrote when it does not start */
export async function startNginx(settings: NginxSettings): Promise<NginxServer> {
  const [port = 0] = await freePorts(1);
  const folder = temporaryFolder('nginx');
  const file = join(folder, 'nginx.conf');
  for (const name of temporaryPaths) mkdirSync(join(folder, name));
  writeFileSync(file, configText(settings, folder, port));
  const url = `http://127.0.0.1:${port}`;
  const server = runServer(settings.binary.path, ['-p', folder, '-c', file, '-e', 'stderr'], folder);
  const stop = async (): Promise<void> => {
    await endServer(server);
    removeFolder(folder);
  };
  try {
    await untilServers('nginx answers', [server], async () => (await fetch(url)).status > 0);
    return { url, pids: [server.pid, ...childrenOf(server.pid)], stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Where this nginx looks for modules, and where Debian puts them. */
export function nginxModule(binary: ServerBinary, name: string): string | undefined {
  const told = execFileSync('/bin/sh', ['-c', '"$0" -V 2>&1', binary.path], { encoding: 'utf8' });
  const own = /--modules-path=(\S+)/.exec(told)?.[1];
  const folders = [...(own === undefined ? [] : [own]), '/usr/lib/nginx/modules'];
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
}

/** Source: proc(5), `/proc/<pid>/task/<tid>/children`. */
function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim();
  return text === '' ? [] : text.split(' ').map(Number);
}

function configText(
  { connectionsMax, modules, server }: NginxSettings,
  folder: string,
  port: number,
): string {
  return [
    ...modules.map((path) => `load_module "${path}";`),
    'daemon off;',
    `pid "${join(folder, 'nginx.pid')}";`,
    'worker_processes 1;',
    `worker_rlimit_nofile ${connectionsMax + 1000};`,
    `events { worker_connections ${connectionsMax + 500}; }`,
    'http {',
    'access_log off;',
    ...temporaryPaths.map((name) => `${name}_temp_path "${join(folder, name)}";`),
    // A publisher stays on one connection.
    'keepalive_requests 1000000000;',
    'keepalive_timeout 1h;',
    `server { listen 127.0.0.1:${port} backlog=4096; ${server} }`,
    '}',
    '',
  ].join('\n');
}
