import { randomInt } from 'node:crypto';
import type { Cluster } from '../broker/cluster.js';
import { createNamespaces } from '../broker/namespaces.js';
import { assemble } from './assemble.js';
import type { Config } from './config.js';
import { drainConnections } from './drain.js';
import { openEngines } from './engines.js';
import { listen } from './listen.js';
import type { Logger } from './log.js';
import { startMetricsServer } from './metrics-server.js';
import { shortText, shortTextDigits } from './short-text.js';
import { loadUws } from './uws.js';

/** A running node. */
export interface Node {
  readonly id: string;
  /** Where it listens, for people and for the `listening` line. */
  readonly url: string;
  /** Moves the clients away, then leaves the cluster and frees the port. */
  stop(): Promise<void>;
}

export interface StartOptions {
  /** Whether other nodes of this machine listen on the same port, and share its connections. */
  readonly sharedPort?: boolean;
}

/**
 * Builds a node from its settings and starts it.
 * @throws ListenError when the port cannot be had; BrokerError `unavailable` when the cluster is away
 */
export async function startNode(config: Config, log: Logger, options: StartOptions = {}): Promise<Node> {
  const nodeId = `${config.nodeName}-${bootId()}`;
  const namespaces = createNamespaces(config.namespaces);
  const engines = await openEngines(config, nodeId, namespaces, log);
  const uws = loadUws(config.limits.headerBytesMax);
  const app =
    config.tlsCert !== undefined && config.tlsKey !== undefined
      ? uws.SSLApp({ cert_file_name: config.tlsCert, key_file_name: config.tlsKey })
      : uws.App();
  const state = { draining: false, url: urlOf(config, config.port) };
  const parts = assemble({ config, nodeId, namespaces, engines, app, log, state });

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
  state.url = urlOf(config, listening.port);
  return {
    id: nodeId,
    url: state.url,
    async stop() {
      state.draining = true;
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

/** From now on the node is seen and told by the others, and takes its share of the connections that may come in a second. */
async function joinCluster(
  cluster: Cluster,
  { admission, authenticator, describe, peerService, peers }: ReturnType<typeof assemble>,
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

/** 62⁵: that a node which starts again draws its last id anew within the ten minutes that records live is one chance in 916 million. */
const bootLength = 5;

/** Tells this run of a node from every other one of the same name. Short, since it is in the id of each session in Redis. */
function bootId(): string {
  return shortText(randomInt(shortTextDigits ** bootLength), bootLength);
}
