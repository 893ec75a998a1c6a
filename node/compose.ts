import { randomBytes } from 'node:crypto';
import type { TopicBus } from '../broker/bus.js';
import { createMemoryBus } from '../broker/bus-memory.js';
import type { DirectQueue } from '../broker/direct-queue.js';
import { createMemoryUsers } from '../broker/memory-users.js';
import { createNamespaces, type Namespaces } from '../broker/namespaces.js';
import type { SessionStore } from '../broker/sessions.js';
import { createAdmission } from './admission.js';
import { createAuthenticator } from './auth.js';
import { Batcher } from './batcher.js';
import { Channels } from './channels.js';
import type { Config } from './config.js';
import { Connections } from './connections.js';
import { Direct } from './direct.js';
import { drainConnections } from './drain.js';
import { Fanout } from './fanout.js';
import { FrameHandler } from './frame-handler.js';
import { Handshake } from './handshake.js';
import { Heartbeat } from './heartbeat.js';
import { serveHttp } from './http-api.js';
import { listen } from './listen.js';
import type { Logger } from './log.js';
import { createMetrics, type Metrics } from './metrics.js';
import { startMetricsServer } from './metrics-server.js';
import { Publisher } from './publisher.js';
import { createSameSiteRules } from './same-site.js';
import { Subscriptions } from './subscriptions.js';
import { TopicPublisher } from './topic-publisher.js';
import { loadUws, type TemplatedApp } from './uws.js';
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

interface Engines {
  readonly bus: TopicBus;
  readonly store: SessionStore;
  readonly queue: DirectQueue;
}

/**
 * Builds a node from its settings and starts it; the only place that knows every part.
 * @throws ListenError when the port cannot be had; BrokerError `unavailable` when the cluster is away
 */
export async function startNode(config: Config, log: Logger): Promise<Node> {
  const nodeId = `${config.nodeName}-${randomBytes(4).toString('hex')}`;
  const namespaces = createNamespaces(config.namespaces);
  const engines = createEngines(config, namespaces);
  const uws = loadUws(config.limits.headerBytesMax);
  const app =
    config.tlsCert !== undefined && config.tlsKey !== undefined
      ? uws.SSLApp({ cert_file_name: config.tlsCert, key_file_name: config.tlsKey })
      : uws.App();
  const parts = assemble(config, nodeId, namespaces, engines, app, log);

  await engines.bus.start(parts.channels);
  await engines.store.start();
  const listening = await listen(uws, app, config.host, config.port);
  const metricsServer =
    config.metricsPort === undefined
      ? undefined
      : await startMetricsServer(config.host, config.metricsPort, parts.metrics, log);
  parts.heartbeat.start();
  const scheme = config.tlsCert === undefined ? 'http' : 'https';
  const host = config.host.includes(':') ? `[${config.host}]` : config.host;
  return {
    id: nodeId,
    url: `${scheme}://${host}:${listening.port}`,
    async stop() {
      parts.state.draining = true;
      listening.close();
      await drainConnections(parts.connections, config.drainSec);
      parts.heartbeat.stop();
      await engines.bus.stop();
      await engines.store.stop();
      await metricsServer?.close();
      app.close();
    },
  };
}

function createEngines(config: Config, namespaces: Namespaces): Engines {
  const { sessions, queue } = createMemoryUsers({ queueMax: config.directQueueMax });
  return { bus: createMemoryBus({ namespaces, storeBytesMax: config.storeBytes }), store: sessions, queue };
}

function assemble(
  config: Config,
  nodeId: string,
  namespaces: Namespaces,
  { bus, queue, store }: Engines,
  app: TemplatedApp,
  log: Logger,
) {
  const { limits } = config;
  const metrics = createMetrics();
  const { counters } = metrics;
  const state = { draining: false };
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
  const direct = new Direct({ queue, store, nodeId, sessionOf: (id) => connections.get(id), counters, log });
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
    admission: createAdmission(config.connectRate),
    sameSite,
    allowQueryToken: config.allowQueryToken,
    accepts: () =>
      !state.draining && (config.connectionsMax === 0 || connections.size < config.connectionsMax),
  });
  const heartbeat = new Heartbeat({ connections, store, direct, ...pickTimes(config), log, counters });
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
    startedAt: Date.now(),
  });
  return { channels, connections, heartbeat, metrics, state };
}

function pickTimes({ expiringSec, idleSec, pingSec, slowSec }: Config) {
  return { expiringSec, idleSec, pingSec, slowSec };
}

function registerGauges(metrics: Metrics, connections: Connections, channels: Channels): void {
  metrics.gauge('connections', 'Connections now.', () => connections.size);
  metrics.gauge('channels', 'Topics, patterns and groups hosted now.', () => channels.size);
}
