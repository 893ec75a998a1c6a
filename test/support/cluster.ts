import { connect as connectNats, type NatsConnection } from 'nats';
import { startNode, freePort, type NodeProcess } from './node-process.js';
import { startNatsCluster, type NatsServers } from './servers/nats-kit.js';
import { startRedisCluster, type RedisServers } from './servers/redis-kit.js';
import { eventually } from './signal.js';
import { apiKey, authEnv } from './tokens.js';

/** Real servers and nodes that work together: three NATS servers, a Redis Cluster of six, and as many nodes as wanted. */
export interface TestCluster {
  readonly nats: NatsServers;
  readonly redis: RedisServers;
  readonly nodes: NodeProcess[];
  /** Starts one more node, or the `index`-th again on its old port. */
  startNode(index?: number): Promise<NodeProcess>;
  /** A connection of the test's own, which hears whatever it subscribes to. */
  watchNats(): Promise<NatsConnection>;
  stop(): Promise<void>;
}

export async function startTestCluster(
  size: number,
  env: Readonly<Record<string, string>> = {},
): Promise<TestCluster> {
  const [nats, redis] = await Promise.all([startNatsCluster(3), startRedisCluster()]);
  const watchers: NatsConnection[] = [];
  const nodes: NodeProcess[] = [];
  const ports: number[] = [];
  const cluster: TestCluster = {
    nats,
    redis,
    nodes,
    async startNode(index = nodes.length) {
      ports[index] ??= await freePort();
      const turned = [...nats.urls.slice(index % 3), ...nats.urls.slice(0, index % 3)];
      const node = await startNode({
        ...authEnv,
        TOPICAST_PORT: String(ports[index]),
        TOPICAST_NODE_NAME: `n${index}`,
        TOPICAST_NATS_URL: turned.join(','),
        TOPICAST_REDIS_URL: redis.urls.join(','),
        TOPICAST_CONNECT_RATE: '1000000',
        TOPICAST_LOG_LEVEL: 'warn',
        TOPICAST_DRAIN_SEC: '1',
        ...env,
      });
      nodes[index] = node;
      return node;
    },
    async watchNats() {
      const connection = await connectNats({
        servers: [...nats.urls],
        name: 'test',
        maxReconnectAttempts: -1,
      });
      watchers.push(connection);
      return connection;
    },
    async stop() {
      await Promise.all(watchers.map((connection) => connection.close()));
      await Promise.all(nodes.map((node) => node.kill()));
      await Promise.all([nats.stop(), redis.stop()]);
    },
  };
  try {
    for (let i = 0; i < size; i++) ports.push(await freePort());
    await Promise.all(ports.map((_, i) => cluster.startNode(i)));
    await eventually('the nodes see each other', async () => {
      const counts = await Promise.all(nodes.map(async (node) => (await nodesSeenBy(node.port)).length));
      return counts.every((count) => count === size);
    });
    return cluster;
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}

async function nodesSeenBy(port: number): Promise<readonly { id: string }[]> {
  return (await callApi<{ nodes: { id: string }[] }>(port, 'GET', '/v1/nodes')).body.nodes;
}

export interface ApiAnswer<T> {
  readonly status: number;
  readonly body: T;
}

/** One call of the HTTP API with the key that may do everything. */
export async function callApi<T>(
  port: number,
  method: string,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<ApiAnswer<T>> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as T };
}

export interface Outgoing {
  readonly topic: string;
  readonly data: unknown;
  readonly id?: string;
}

/** Publishes in order, a thousand a call; throws when one is refused. */
export async function publishAll(port: number, messages: readonly Outgoing[]): Promise<void> {
  for (let i = 0; i < messages.length; i += 1000) {
    const { body, status } = await callApi<{ results: { error?: unknown }[] }>(port, 'POST', '/v1/publish', {
      messages: messages.slice(i, i + 1000),
    });
    const refused = status === 200 ? body.results.find((result) => result.error !== undefined) : body;
    if (refused !== undefined) throw new Error(`refused with ${status}: ${JSON.stringify(refused)}`);
  }
}

export interface PushAnswer {
  readonly id?: number;
  readonly status: string;
  readonly sessions: number;
}

export function push(
  port: number,
  userId: string,
  data: unknown,
  query = '',
): Promise<ApiAnswer<PushAnswer>> {
  return callApi<PushAnswer>(port, 'POST', `/v1/users/${userId}/messages${query}`, data);
}

/** What a NATS server says of one connection. */
export interface NatsConnectionState {
  readonly name: string;
  /** Messages from the client, and to it. */
  readonly in: number;
  readonly out: number;
  readonly subjects: readonly string[];
}

/** The connections that nodes hold now, by node id. */
export async function natsConnections(nats: NatsServers): Promise<Map<string, NatsConnectionState>> {
  const found = new Map<string, NatsConnectionState>();
  for (const { monitor } of nats.nodes) {
    const { connections } = (await (await fetch(`${monitor}/connz?subs=1&limit=1000`)).json()) as {
      connections: { name?: string; in_msgs: number; out_msgs: number; subscriptions_list?: string[] }[];
    };
    for (const { in_msgs, name = '', out_msgs, subscriptions_list: subjects = [] } of connections) {
      found.set(name, { name, in: in_msgs, out: out_msgs, subjects });
    }
  }
  return found;
}

/** The number of the NATS server that a node is connected to. */
export async function natsServerOf(nats: NatsServers, nodeId: string): Promise<number> {
  for (const [i, { monitor }] of nats.nodes.entries()) {
    const text = await (await fetch(`${monitor}/connz?limit=1000`)).text();
    if (text.includes(`"${nodeId}"`)) return i;
  }
  throw new Error(`no NATS server knows ${nodeId}`);
}

/** Calls of each command so far, over the servers that are masters; what scripts call inside is counted by Redis like any other. */
export async function redisCalls(redis: RedisServers): Promise<Map<string, number>> {
  const calls = new Map<string, number>();
  for (const node of redis.nodes) {
    if (!(await node.call('INFO', 'replication')).includes('role:master')) continue;
    const stats = await node.call('INFO', 'commandstats');
    for (const [, name = '', count] of stats.matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)) {
      calls.set(name, (calls.get(name) ?? 0) + Number(count));
    }
  }
  return calls;
}

/** What was called between two counts, without what replicas, the test itself, new connections and the clients' look at the slots account for. */
export function callsBetween(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>) {
  const fixed = new Set([
    'info',
    'replconf',
    'ping',
    'psync',
    // The look at the slots goes over a connection of its own, which names itself.
    'cluster|slots',
    'client|setname',
  ]);
  const calls: Record<string, number> = {};
  for (const [name, count] of after) {
    const more = count - (before.get(name) ?? 0);
    if (more > 0 && !fixed.has(name)) calls[name] = more;
  }
  return calls;
}
