import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { readScripts } from './redis-scripts.js';

export type RedisClient = Redis | Cluster;

export interface RedisConnectOptions {
  /** `redis://` or `rediss://` with user and password if need be: one plain Redis, or nodes of a cluster. */
  readonly urls: readonly string[];
  /** Shown by CLIENT LIST. */
  readonly name: string;
  readonly commandMsMax: number;
}

/**
 * ms between two looks at which server has which slots. Each takes a connection of its own and some 10 ms of the event loop (ioredis joins a text for
 * every slot), so a node that has nothing to do would do mostly that. In between, whoever meets a server that has a slot no longer is told and looks
 * at once, and a connection to one that died is given up.
 */
const slotsRefreshMs = 15_000;

/**
 * Connects to the first address that answers, as a cluster if that is one. Retrying is the caller's: a client that resends by itself what
 * may have been carried out already would queue a direct message twice. Not autopipelined either: of such a
 * batch, one command that meets a moved slot fails alone without a redirection, and one with a wrong key fails all (ioredis 6).
 */
export async function connectRedis(options: RedisConnectOptions): Promise<RedisClient> {
  let last: unknown;
  for (const url of options.urls) {
    try {
      return (await isCluster(url, options)) ? await openCluster(options) : await openPlain(url, options);
    } catch (error) {
      last = error;
    }
  }
  throw last;
}

async function isCluster(url: string, options: RedisConnectOptions): Promise<boolean> {
  const probe = new Redis(url, { ...nodeOptions(options), lazyConnect: true, retryStrategy: () => null });
  probe.on('error', ignoreReported);
  try {
    await probe.connect();
    return (await probe.info('cluster')).includes('cluster_enabled:1');
  } finally {
    probe.disconnect();
  }
}

async function openPlain(url: string, options: RedisConnectOptions): Promise<Redis> {
  const client = new Redis(url, {
    ...nodeOptions(options),
    lazyConnect: true,
    enableOfflineQueue: false,
    retryStrategy: (times) => Math.min(50 * times, 1000),
    // A proxy or Sentinel moved the master behind this address.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  });
  return opened(client, options);
}

async function openCluster(options: RedisConnectOptions): Promise<Cluster> {
  const secure = options.urls.some((url) => url.startsWith('rediss:'));
  const client = new Cluster([...options.urls], {
    redisOptions: {
      ...nodeOptions(options),
      ...credentials(options.urls[0]!),
      ...(secure ? { tls: {} } : {}),
    },
    lazyConnect: true,
    enableOfflineQueue: false,
    // 0: what was under way on a connection that broke comes back to us, for its outcome is unknown.
    retryDelayOnFailover: 0,
    retryDelayOnTryAgain: 50,
    slotsRefreshInterval: slotsRefreshMs,
    slotsRefreshTimeout: options.commandMsMax,
    clusterRetryStrategy: (times) => Math.min(50 * times, 1000),
    // Certificates name hosts: keep the name instead of its address.
    ...(secure ? { dnsLookup: (address, done) => done(null, address) } : {}),
  });
  const cluster = await opened(client, options);
  // So that the first users do not meet connections that are being made; one that fails is retried when it is needed.
  await Promise.allSettled(cluster.nodes('master').map((node) => node.ping()));
  return cluster;
}

async function opened<T extends RedisClient>(client: T, options: RedisConnectOptions): Promise<T> {
  client.on('error', ignoreReported);
  for (const [name, lua] of readScripts()) client.defineCommand(name, { lua });
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('not ready in time')), options.commandMsMax * 2);
  });
  try {
    // A cluster that is down keeps the client trying without settling.
    await Promise.race([client.connect(), late]);
    return client;
  } catch (error) {
    client.disconnect();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** Without the type of the client's options, which is stricter where it is used than where it is declared. */
function nodeOptions({ name, commandMsMax }: RedisConnectOptions) {
  return {
    connectionName: name,
    protocol: 2 as const,
    commandTimeout: commandMsMax,
    connectTimeout: commandMsMax,
    // A server that is cut off without a word: give up the connection, else TCP tries for a quarter of an hour.
    socketTimeout: commandMsMax * 2,
    keepAlive: 10_000,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
  };
}

/** The servers that a cluster names itself take the same user and password. */
function credentials(url: string): Pick<RedisOptions, 'username' | 'password'> {
  const { username, password } = new URL(url);
  return {
    ...(username === '' ? {} : { username: decodeURIComponent(username) }),
    ...(password === '' ? {} : { password: decodeURIComponent(password) }),
  };
}

function ignoreReported(): void {
  // Each call that a lost connection hits fails with the same error, and the link tells its state.
}
