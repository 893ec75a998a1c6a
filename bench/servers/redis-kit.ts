import { redisServer } from './binaries.js';
import { redisCall } from './redis-call.js';
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

export interface RedisNode {
  readonly port: number;
  readonly process: ServerProcess;
  /** One command on a connection of its own; aggregates are not understood. */
  call(...args: readonly string[]): Promise<string>;
}

export interface RedisServers extends ServerGroup {
  /** In a cluster: three that start as masters, then the replica of each, in the same order. */
  readonly nodes: readonly RedisNode[];
}

export interface RedisSettings {
  /** Lines of `redis.conf` by name, beyond what the kit sets. */
  readonly config?: Readonly<Record<string, string>>;
}

const masters = 3;
const slots = 16_384;

/** One plain Redis without persistence: a restarted one is empty. */
export async function startRedis(settings: RedisSettings = {}): Promise<RedisServers> {
  const [port] = await freePorts(1);
  return startGroup([{ port: port!, config: settings.config ?? {} }], async (group) => {
    await group.untilAnswering(group.nodes);
  });
}

/** A Redis Cluster of three masters and three replicas, `cluster-node-timeout` 2 s, without persistence. */
export async function startRedisCluster(settings: RedisSettings = {}): Promise<RedisServers> {
  const ports = await freePorts(masters * 4);
  const members = Array.from({ length: masters * 2 }, (_, i) => ({
    port: ports[i * 2]!,
    config: {
      'cluster-enabled': 'yes',
      'cluster-config-file': `nodes-${i}.conf`,
      // Not port + 10000, which may be taken.
      'cluster-port': String(ports[i * 2 + 1]),
      'cluster-node-timeout': '2000',
      // A replica that was just made or lagged takes over all the same: tests kill masters right away.
      'cluster-replica-validity-factor': '0',
      'repl-diskless-sync-delay': '0',
      ...settings.config,
    },
  }));
  return startGroup(members, async (group) => {
    await group.untilAnswering(group.nodes);
    await formCluster(group, ports);
    await untilClusterHealthy(group.nodes);
  });
}

interface Member {
  readonly port: number;
  readonly config: Readonly<Record<string, string>>;
}

class RedisGroup implements RedisServers {
  readonly nodes: MutableNode[];
  readonly urls: readonly string[];
  readonly #folder: string;

  constructor(members: readonly Member[]) {
    this.#folder = temporaryFolder('redis');
    this.nodes = members.map((member) => new MutableNode(member, this.#folder));
    this.urls = members.map(({ port }) => `redis://127.0.0.1:${port}`);
  }

  async kill(index: number, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    await endServer(this.nodes[index]!.process, signal);
  }

  async restart(index: number): Promise<void> {
    const node = this.nodes[index]!;
    await endServer(node.process);
    node.start();
    await this.untilAnswering([node]);
  }

  async healthy(): Promise<void> {
    if (this.nodes.length > 1) await untilClusterHealthy(this.nodes);
    else await this.untilAnswering(this.nodes);
  }

  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => endServer(node.process)));
    removeFolder(this.#folder);
  }

  async untilAnswering(nodes: readonly RedisNode[]): Promise<void> {
    await Promise.all(
      nodes.map((node) =>
        untilServers(`Redis on port ${node.port} answers`, [node.process], async () => {
          return (await node.call('PING')) === 'PONG';
        }),
      ),
    );
  }
}

class MutableNode implements RedisNode {
  readonly port: number;
  process: ServerProcess;
  readonly #config: Readonly<Record<string, string>>;
  readonly #folder: string;

  constructor(member: Member, folder: string) {
    this.port = member.port;
    this.#config = member.config;
    this.#folder = folder;
    this.process = this.start();
  }

  start(): ServerProcess {
    const config = {
      bind: '127.0.0.1',
      port: String(this.port),
      save: '',
      appendonly: 'no',
      ...this.#config,
    };
    const args = Object.entries(config).flatMap(([name, value]) => [`--${name}`, value]);
    this.process = runServer(redisServer().path, args, this.#folder);
    return this.process;
  }

  call(...args: readonly string[]): Promise<string> {
    return redisCall(this.port, ...args);
  }
}

async function startGroup(
  members: readonly Member[],
  prepare: (group: RedisGroup) => Promise<void>,
): Promise<RedisServers> {
  const group = new RedisGroup(members);
  try {
    await prepare(group);
    return group;
  } catch (error) {
    await group.stop();
    throw error;
  }
}

async function formCluster({ nodes }: RedisGroup, ports: readonly number[]): Promise<void> {
  const perMaster = Math.ceil(slots / masters);
  for (const [i, node] of nodes.entries()) {
    await node.call('CLUSTER', 'SET-CONFIG-EPOCH', String(i + 1));
    const last = Math.min(slots, (i + 1) * perMaster) - 1;
    if (i < masters) await node.call('CLUSTER', 'ADDSLOTSRANGE', String(i * perMaster), String(last));
    await nodes[0]!.call('CLUSTER', 'MEET', '127.0.0.1', String(node.port), String(ports[i * 2 + 1]));
  }
  await untilServers('the servers know each other', processesOf(nodes), () =>
    all(nodes, async (node) => {
      const lines = (await node.call('CLUSTER', 'NODES')).trim().split('\n');
      return lines.length === nodes.length && !lines.some((line) => /handshake|fail/.test(line));
    }),
  );
  for (let i = 0; i < masters; i++) {
    await nodes[masters + i]!.call('CLUSTER', 'REPLICATE', await nodes[i]!.call('CLUSTER', 'MYID'));
  }
}

/** All that run agree that the cluster is well, and each that is a replica follows its master. */
async function untilClusterHealthy(nodes: readonly RedisNode[]): Promise<void> {
  const up = nodes.filter((node) => node.process.running);
  await untilServers('the Redis Cluster is healthy', processesOf(up), () =>
    all(up, async (node) => {
      const info = await node.call('CLUSTER', 'INFO');
      const replication = await node.call('INFO', 'replication');
      const linked = replication.includes('role:master') || replication.includes('master_link_status:up');
      const replicas = (await node.call('CLUSTER', 'NODES')).match(/\bslave\b/g) ?? [];
      return info.includes('cluster_state:ok') && linked && replicas.length >= up.length - masters;
    }),
  );
}

function processesOf(nodes: readonly RedisNode[]): ServerProcess[] {
  return nodes.map((node) => node.process);
}

async function all<T>(list: readonly T[], ask: (item: T) => Promise<boolean>): Promise<boolean> {
  return (await Promise.all(list.map(ask))).every(Boolean);
}
