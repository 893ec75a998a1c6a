import type { NodeLoad } from '../broker/cluster.js';
import type { Namespaces } from '../broker/namespaces.js';
import { createAdmission } from './admission.js';
import { createAuthenticator, type Authenticator } from './auth.js';
import { Batcher } from './batcher.js';
import { Channels } from './channels.js';
import type { Config } from './config.js';
import { Connections } from './connections.js';
import { Direct } from './direct.js';
import type { Engines } from './engines.js';
import { Fanout } from './fanout.js';
import { FrameHandler } from './frame-handler.js';
import { Handshake } from './handshake.js';
import { Heartbeat } from './heartbeat.js';
import { serveHttp } from './http-api.js';
import { HotTopics } from './hot-topics.js';
import type { Logger } from './log.js';
import { createMetrics, type Metrics } from './metrics.js';
import { nodeStats } from './node-stats.js';
import { PeerService } from './peer-service.js';
import { Peers } from './peers.js';
import { Publisher } from './publisher.js';
import { createSameSiteRules } from './same-site.js';
import { Subscriptions } from './subscriptions.js';
import { TopicPublisher } from './topic-publisher.js';
import type { TemplatedApp } from './uws.js';
import { version } from './version.js';
import { serveWebSockets } from './ws-edge.js';

/** What every part of a node is built from. */
export interface NodeContext {
  readonly config: Config;
  readonly nodeId: string;
  readonly namespaces: Namespaces;
  readonly engines: Engines;
  readonly app: TemplatedApp;
  readonly log: Logger;
  /** What changes while the node lives. */
  readonly state: { draining: boolean; url: string };
}

/** Held messages leave at most this often when the node is busy. */
const batchWindowMs = 5;

/** Builds the parts of a node and hangs them into each other and into µWS. Nothing is started. */
export function assemble(context: NodeContext) {
  const { app, config, engines, log, state } = context;
  const metrics = createMetrics();
  const authenticator = createAuthenticator(config, { log });
  const admission = createAdmission(config.connectRate);
  const peers = new Peers(engines.cluster, log);
  const traffic = createTraffic(context, metrics);
  const sessions = createSessions(context, metrics, traffic, peers, authenticator);
  const { connections, direct } = sessions;
  const { channels, subscriptions } = traffic;
  traffic.late.onEpoch = (namespace, head) => connections.restart(namespace, head);
  traffic.late.onBack = () => sessions.heartbeat.refreshSoon();
  const sameSite = createSameSiteRules(config, (origin) =>
    log.warn({ origin }, 'a page of this origin was turned away: TOPICAST_ALLOWED_ORIGINS may list it'),
  );
  const handshake = new Handshake({
    authenticator,
    admission,
    sameSite,
    allowQueryToken: config.allowQueryToken,
    accepts: () =>
      !state.draining && (config.connectionsMax === 0 || connections.size < config.connectionsMax),
  });
  metrics.gauge('connections', 'Connections now.', () => connections.size);
  metrics.gauge('channels', 'Topics, patterns and groups hosted now.', () => channels.size);
  for (const [name, isUp] of Object.entries(engines.links)) {
    metrics.gauge(`${name}_up`, `Whether ${name} is in reach: 1 or 0.`, () => Number(isUp()));
  }
  const ignoredHelp = 'Messages between nodes that are not of this protocol.';
  metrics.counter('cluster_messages_ignored_total', ignoredHelp, () => engines.ignoredMessages());
  const { limits } = config;
  serveWebSockets(app, { handshake, ...sessions, topics: traffic.topics, limits, metrics, log });
  serveHttp(app, {
    ...context,
    ...engines,
    ...traffic,
    ...sessions,
    peers,
    handshake,
    authenticator,
    sameSite,
    metrics,
    isReady: () => !state.draining && engines.bus.connected,
    isDraining: () => state.draining,
  });
  const hotTopics = new HotTopics(() => channels.all());
  const stats = () => nodeStats(context.nodeId, metrics.counters, hotTopics);
  const peerService = new PeerService({
    connections,
    subscriptions,
    channels,
    direct,
    authenticator,
    stats,
    log,
  });
  const describe = createDescription(context, connections, channels);
  return { admission, authenticator, describe, metrics, peers, peerService, ...traffic, ...sessions };
}

/** From the bus to µWS, and from publishers to the bus. */
function createTraffic({ app, config, engines, log, namespaces }: NodeContext, { counters }: Metrics) {
  const { bus } = engines;
  const topics = new TopicPublisher(app);
  // The sessions are made after the channels that they join.
  const late: Pick<ConstructorParameters<typeof Channels>[0], 'onEpoch' | 'onBack'> = {
    onEpoch: () => undefined,
    onBack: () => undefined,
  };
  const channels = new Channels({
    bus,
    namespaces,
    fanout: new Fanout((topic, frame, isBinary) => topics.publish(topic, frame, isBinary), counters),
    batcher: new Batcher(batchWindowMs),
    ringMessages: config.ringMessages,
    ringBytes: config.ringBytes,
    lingerMs: config.lingerMs,
    log,
    counters,
    onEpoch: (namespace, head) => late.onEpoch(namespace, head),
    onBack: () => late.onBack?.(),
  });
  const { payloadBytesMax } = config.limits;
  return {
    topics,
    late: late as { -readonly [K in keyof typeof late]: (typeof late)[K] },
    channels,
    subscriptions: new Subscriptions(channels, bus, config.limits),
    publisher: new Publisher({ bus, namespaces, payloadBytesMax, counters, log }),
  };
}

/** The connections, what they may say, and what happens to them by time. */
function createSessions(
  { config, engines, log, nodeId }: NodeContext,
  { counters }: Metrics,
  { publisher, subscriptions }: ReturnType<typeof createTraffic>,
  peers: Peers,
  authenticator: Authenticator,
) {
  const { queue, store } = engines;
  const { expiringSec, idleSec, limits, pingSec, slowSec } = config;
  const connections: Connections = new Connections({
    nodeId,
    store,
    hasTopics: () => engines.bus.connected,
    subscriptions,
    direct: () => direct,
    frames: () => frames,
    pingSec,
    idleSec,
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
  const frames = new FrameHandler({ limits, authenticator, publisher, direct, subscriptions, log, counters });
  const times = { expiringSec, idleSec, pingSec, slowSec };
  const heartbeat = new Heartbeat({ connections, store, direct, ...times, log, counters });
  return { connections, direct, frames, heartbeat };
}

function createDescription(
  { state }: NodeContext,
  connections: Connections,
  channels: Channels,
): () => NodeLoad {
  const startedAt = Date.now();
  return () => ({
    url: state.url,
    connections: connections.size,
    channels: channels.size,
    version,
    startedAt,
    draining: state.draining,
  });
}
