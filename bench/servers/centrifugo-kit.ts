import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ServerBinary } from './binaries.js';
import {
  endServer,
  freePorts,
  removeFolder,
  runServer,
  temporaryFolder,
  untilServers,
} from './server-process.js';

export interface CentrifugoServer {
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
  readonly pid: number;
  /** Of the HTTP API. */
  readonly apiKey: string;
  stop(): Promise<void>;
}

const apiKey = 'bench';

/** One Centrifugo with its memory engine, which lets everybody in. @throws Error with what it wrote when it does not start */
export async function startCentrifugo(binary: ServerBinary): Promise<CentrifugoServer> {
  const [port = 0] = await freePorts(1);
  const folder = temporaryFolder('centrifugo');
  const file = join(folder, 'config.json');
  const config = {
    client: { insecure: true },
    health: { enabled: true },
    http_api: { key: apiKey },
    http_server: { address: '127.0.0.1', port: String(port) },
    log: { level: 'error' },
  };
  writeFileSync(file, JSON.stringify(config));
  const server = runServer(binary.path, ['-c', file], folder);
  const stop = async (): Promise<void> => {
    await endServer(server);
    removeFolder(folder);
  };
  const url = `http://127.0.0.1:${port}`;
  try {
    await untilServers('Centrifugo is healthy', [server], async () => (await fetch(`${url}/health`)).ok);
    return { url, pid: server.pid, apiKey, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** One that `go install` has built says 0.0.0; its version stands in what Go adds to every program. */
export function centrifugoRelease({ path, version }: ServerBinary): string {
  if (version !== '0.0.0') return version;
  const program = readFileSync(path);
  const at = program.indexOf('mod\tgithub.com/centrifugal/centrifugo/');
  const line = at < 0 ? '' : program.toString('latin1', at, at + 200);
  return /^mod\t\S+\tv(\d+\.\d+\.\d+)/.exec(line)?.[1] ?? 'unknown';
}
