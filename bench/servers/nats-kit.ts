import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { natsServer } from './binaries.js';
import {
  endServer,
  freePorts,
  removeFolder,
  runServer,
  temporaryFolder,
  untilServers,
  type ServerGroup,
  type ServerProcess,
} from './server-process.js';

export interface NatsNode {
  readonly name: string;
  readonly port: number;
  /** `http://127.0.0.1:PORT`, where `/varz`, `/connz` and `/jsz` are. */
  readonly monitor: string;
  /** The folder of its streams. */
  readonly store: string;
  readonly process: ServerProcess;
}

export interface NatsServers extends ServerGroup {
  readonly nodes: readonly NatsNode[];
  readonly version: string;
}

export interface NatsSettings {
  /** On unless false. */
  readonly jetstream?: boolean;
  /** The start of the version wanted (`2.11`); the oldest server on the machine unless given. */
  readonly version?: string;
  /** Lines of the server's configuration beyond what the kit writes: accounts, permissions, limits. */
  readonly config?: string;
}

/** One NATS server, with JetStream unless told otherwise. Its streams live as long as the kit, restarts included. */
export async function startNats(settings: NatsSettings = {}): Promise<NatsServers> {
  return startGroup(1, settings);
}

/** A NATS cluster; settles when JetStream has a leader and every server follows it. */
export async function startNatsCluster(size = 3, settings: NatsSettings = {}): Promise<NatsServers> {
  return startGroup(size, settings);
}

async function startGroup(size: number, settings: NatsSettings): Promise<NatsServers> {
  const group = new NatsGroup(size, await freePorts(size * 3), settings);
  try {
    await group.healthy();
    return group;
  } catch (error) {
    await group.stop();
    throw error;
  }
}

class NatsGroup implements NatsServers {
  readonly nodes: MutableNode[];
  readonly urls: readonly string[];
  readonly version: string;
  readonly #jetstream: boolean;
  readonly #folder: string;

  constructor(size: number, ports: readonly number[], settings: NatsSettings) {
    const binary = natsServer(settings.version);
    this.version = binary.version;
    this.#jetstream = settings.jetstream ?? true;
    this.#folder = temporaryFolder('nats');
    const routePorts = ports.slice(size, size * 2);
    this.nodes = Array.from({ length: size }, (_, i) => {
      const place: Place = {
        name: `n${i + 1}`,
        port: ports[i]!,
        routePort: routePorts[i]!,
        monitorPort: ports[size * 2 + i]!,
        routes: size > 1 ? routePorts : [],
      };
      return new MutableNode(binary.path, this.#folder, place, settings);
    });
    this.urls = this.nodes.map(({ port }) => `nats://127.0.0.1:${port}`);
  }

  async kill(index: number, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    await endServer(this.nodes[index]!.process, signal);
  }

  async restart(index: number): Promise<void> {
    const node = this.nodes[index]!;
    await endServer(node.process);
    node.start();
    await untilServers(`${node.name} is healthy`, [node.process], async () => {
      return (await fetch(`${node.monitor}/healthz`)).ok;
    });
  }

  async healthy(): Promise<void> {
    const up = this.nodes.filter((node) => node.process.running);
    const processes = up.map((node) => node.process);
    await untilServers('NATS is healthy', processes, async () => {
      const answers = await Promise.all(up.map((node) => this.#isFit(node, up.length)));
      return answers.every(Boolean);
    });
  }

  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => endServer(node.process)));
    removeFolder(this.#folder);
  }

  async #isFit(node: NatsNode, running: number): Promise<boolean> {
    if (!(await fetch(`${node.monitor}/healthz`)).ok) return false;
    if (this.nodes.length === 1) return true;
    const varz = await readJson<{ cluster?: { urls?: string[] } }>(`${node.monitor}/varz`);
    if ((varz.cluster?.urls?.length ?? 0) < running - 1) return false;
    if (!this.#jetstream) return true;
    return isFollowed(await readJson<Jsz>(`${node.monitor}/jsz`), running);
  }
}

interface Jsz {
  readonly meta_cluster?: {
    readonly leader?: string;
    /** Only the leader lists them. */
    readonly replicas?: readonly { readonly current: boolean; readonly offline?: boolean }[];
  };
}

/** JetStream has a leader; asked on the leader, also that all others that run are up to date with it. */
function isFollowed({ meta_cluster: meta }: Jsz, running: number): boolean {
  if (meta?.leader === undefined || meta.leader === '') return false;
  const current = meta.replicas?.filter((replica) => replica.current && replica.offline !== true);
  return current === undefined || current.length >= running - 1;
}

async function readJson<T>(url: string): Promise<T> {
  return (await (await fetch(url)).json()) as T;
}

interface Place {
  readonly name: string;
  readonly port: number;
  readonly routePort: number;
  readonly monitorPort: number;
  readonly routes: readonly number[];
}

class MutableNode implements NatsNode {
  readonly name: string;
  readonly port: number;
  readonly monitor: string;
  readonly store: string;
  process: ServerProcess;
  readonly #path: string;
  readonly #folder: string;
  readonly #configFile: string;

  constructor(path: string, folder: string, place: Place, settings: NatsSettings) {
    this.name = place.name;
    this.port = place.port;
    this.monitor = `http://127.0.0.1:${place.monitorPort}`;
    this.#path = path;
    this.#folder = folder;
    this.#configFile = join(folder, `${place.name}.conf`);
    this.store = join(folder, place.name);
    writeFileSync(this.#configFile, configText(place, this.store, settings));
    this.process = this.start();
  }

  start(): ServerProcess {
    this.process = runServer(this.#path, ['-c', this.#configFile], this.#folder);
    return this.process;
  }
}

function configText(place: Place, storeFolder: string, settings: NatsSettings): string {
  const lines = [
    `server_name: ${place.name}`,
    `listen: "127.0.0.1:${place.port}"`,
    `http: "127.0.0.1:${place.monitorPort}"`,
  ];
  if (settings.jetstream ?? true) lines.push(`jetstream { store_dir: "${storeFolder}" }`);
  if (place.routes.length > 0) {
    const routes = place.routes.map((port) => `"nats://127.0.0.1:${port}"`).join(', ');
    lines.push(`cluster { name: test, listen: "127.0.0.1:${place.routePort}", routes: [${routes}] }`);
  }
  return [...lines, settings.config ?? '', ''].join('\n');
}
