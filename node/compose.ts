import { randomBytes } from 'node:crypto';
import type { Cluster, NodeLoad } from '../broker/cluster.js';
import { createNamespaces, type Namespaces } from '../broker/namespaces.js';
import { createAdmission, type Admission } from './admission.js';
import { createAuthenticator, type Authenticator } from './auth.js';
import { Batcher } from './batcher.js';
import { Channels } from './channels.js';
import type { Config } from './config.js';
import { Connections } from './connections.js';
import { Direct } from './direct.js';
import { drainConnections } from './drain.js';
import { openEngines, type Engines } from './engines.js';
import { Fanout } from './fanout.js';
import { FrameHandler } from './frame-handler.js';
import { Handshake } from './handshake.js';
import { Heartbeat } from './heartbeat.js';
import { serveHttp } from './http-api.js';
import { HotTopics } from './hot-topics.js';
import { listen } from './listen.js';
import type { Logger } from './log.js';
import { createMetrics, type Metrics } from './metrics.js';
import { startMetricsServer } from './metrics-server.js';
import { nodeStats } from './node-stats.js';
import { PeerService } from './peer-service.js';
import { Peers } from './peers.js';
import { Publisher } from './publisher.js';
import { createSameSiteRules } from './same-site.js';
import { Subscriptions } from './subscriptions.js';
import { TopicPublisher } from './topic-publisher.js';
import { loadUws, type TemplatedApp } from './uws.js';
import { version } from './version.js';
import { serveWebSockets } from './ws-edge.js';

/** A running node. */
export interface Node {
  readonly id: string;
  /** Where it listens, for people and for the `listening` line. */
  readonly url: string;
  /** Moves the clients away, then leaves the cluster and frees the port. */
  stop(): Promise<void>;
}

/** Held messages leave at most this often when the node is busy. */
const batchWindowMs = 5;

export interface StartOptions {
  /** Whether other nodes of this machine listen on the same port, and share its connections. */
  readonly sharedPort?: boolean;
}

/**
 * Builds a node from its settings and starts it; the only place that knows every part.
 * @throws ListenError when the port cannot be had; BrokerError `unavailable` when the cluster is away
 */
export async function startNode(config: Config, log: Logger, options: StartOptions = {}): Promise<Node> {
  const nodeId = `${config.nodeName}-${randomBytes(4).toString('hex')}`;
  const namespaces = createNamespaces(config.namespaces);
  const engines = await openEngines(config, nodeId, namespaces, log);
  const uws = loadUws(config.limits.headerBytesMax);
  const app =
    config.tlsCert !== undefined && config.tlsKey !== undefined
      ? uws.SSLApp({ cert_file_name: config.tlsCert, key_file_name: config.tlsKey })
      : uws.App();
  const parts = assemble(config, nodeId, namespaces, engines, app, log);

  await engines.bus.start(parts.channels);
  await engines.store.start();
  // Before it has sessions, so that no message for one of them meets a node that nobody knows.
  await joinCluster(engines.cluster, parts, config);
  const listening = await listen(uws, app, config.host, config.port, options.sharedPort).catch(
    async (error: unknown) => {
      await engines.cluster.stop();
      throw error;
    },
  );
  const metricsServer =
    config.metricsPort === undefined
      ? undefined
      : await startMetricsServer(config.host, config.metricsPort, parts.metrics, log);
  parts.heartbeat.start();
  parts.state.url = urlOf(config, listening.port);
  return {
    id: nodeId,
    url: parts.state.url,
    async stop() {
      parts.state.draining = true;
      listening.close();
      await drainConnections(parts.connections, config.drainSec);
      parts.heartbeat.stop();
      await engines.cluster.stop();
      await engines.bus.stop();
      await engines.store.stop();
      await engines.close();
      await metricsServer?.close();
      app.close();
    },
  };
}

function urlOf({ host, tlsCert }: Config, port: number): string {
  const scheme = tlsCert === undefined ? 'http' : 'https';
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

interface ClusterParts {
  readonly admission: Admission;
  readonly authenticator: Authenticator;
  readonly describe: () => NodeLoad;
  readonly peers: Peers;
  readonly peerService: PeerService;
}

/** From now on the node is seen and told by the others, and takes its share of the connections that may come in a second. */
async function joinCluster(
  cluster: Cluster,
  { admission, authenticator, describe, peerService, peers }: ClusterParts,
  { connectRate }: Config,
): Promise<void> {
  const share = (): void => {
    const takers = cluster.nodes().filter((node) => !node.draining).length;
    admission.setRate(connectRate / Math.max(1, takers));
  };
  cluster.watch(share);
  await cluster.start(describe, (command) => peerService.handle(command));
  share();
  // Before it lets anybody in: a token that an operator has blocked must not come back through a node that is new.
  for (const { expSec, id } of await peers.blockedTokens()) authenticator.blockToken(id, expSec);
}

function assemble(
  config: Config,
  nodeId: string,
  namespaces: Namespaces,
  { bus, cluster, queue, store }: Engines,
  app: TemplatedApp,
  log: Logger,
) {
  const { limits } = config;
  const metrics = createMetrics();
  const { counters } = metrics;
  const state = { draining: false, url: urlOf(config, config.port) };
  const startedAt = Date.now();
  const peers = new Peers(cluster, log);
  const admission = createAdmission(config.connectRate);
  const authenticator = createAuthenticator(config, { log });
  const sameSite = createSameSiteRules(config);
  const topics = new TopicPublisher(app);
  const fanout = new Fanout((topic, frame, isBinary) => topics.publish(topic, frame, isBinary), counters);
  const channels: Channels = new Channels({
    bus,
    namespaces,
    fanout,
    batcher: new Batcher(batchWindowMs),
    ringMessages: config.ringMessages,
    ringBytes: config.ringBytes,
    lingerMs: config.lingerMs,
    log,
    counters,
    onEpoch: (namespace, head) => connections.restart(namespace, head),
    onBack: () => heartbeat.refreshSoon(),
  });
  const subscriptions = new Subscriptions(channels, bus, limits);
  const publisher = new Publisher({
    bus,
    namespaces,
    payloadBytesMax: limits.payloadBytesMax,
    counters,
    log,
  });
  const connections: Connections = new Connections({
    nodeId,
    store,
    subscriptions,
    direct: () => direct,
    frames: () => frames,
    pingSec: config.pingSec,
    idleSec: config.idleSec,
    perUserMax: config.connectionsPerUserMax,
    log,
    counters,
  });
  const direct = new Direct({
    queue,
    store,
    nodeId,
    peers,
    sessionOf: (id) => connections.get(id),
    counters,
    log,
  });
  const frames = new FrameHandler({
    limits,
    authenticator,
    publisher,
    direct,
    subscriptions,
    log,
    counters,
  });
  const handshake = new Handshake({
    authenticator,
    admission,
    sameSite,
    allowQueryToken: config.allowQueryToken,
    accepts: () =>
      !state.draining && (config.connectionsMax === 0 || connections.size < config.connectionsMax),
  });
  const heartbeat: Heartbeat = new Heartbeat({
    connections,
    store,
    direct,
    ...pickTimes(config),
    log,
    counters,
  });
  registerGauges(metrics, connections, channels);
  serveWebSockets(app, { handshake, connections, frames, topics, limits, metrics, log });
  serveHttp(app, {
    config,
    nodeId,
    bus,
    namespaces,
    store,
    publisher,
    direct,
    peers,
    connections,
    subscriptions,
    channels,
    handshake,
    authenticator,
    sameSite,
    metrics,
    log,
    isReady: () => !state.draining && bus.connected,
    isDraining: () => state.draining,
  });
  const hotTopics = new HotTopics(() => channels.all());
  const peerService = new PeerService({
    connections,
    subscriptions,
    channels,
    direct,
    authenticator,
    stats: () => nodeStats(nodeId, counters, hotTopics),
    log,
  });
  const describe = (): NodeLoad => ({
    url: state.url,
    connections: connections.size,
    channels: channels.size,
    version,
    startedAt,
    draining: state.draining,
  });
  return {
    admission,
    authenticator,
    channels,
    connections,
    describe,
    heartbeat,
    metrics,
    peers,
    peerService,
    state,
  };
}

function pickTimes({ expiringSec, idleSec, pingSec, slowSec }: Config) {
  return { expiringSec, idleSec, pingSec, slowSec };
}

function registerGauges(metrics: Metrics, connections: Connections, channels: Channels): void {
  metrics.gauge('connections', 'Connections now.', () => connections.size);
  metrics.gauge('channels', 'Topics, patterns and groups hosted now.', () => channels.size);
}
