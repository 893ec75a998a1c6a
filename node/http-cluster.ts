import type { NodeBeacon } from '../broker/cluster.js';
import { authoriseAdmin } from './http-auth.js';
import type { Exchange } from './http-exchange.js';
import type { HttpServices } from './http-services.js';
import { asksForUpgrade, refuseHandshake, refuseUpgrade } from './ws-edge.js';

/** `GET /healthz`: the process runs. */
export function health(exchange: Exchange): void {
  exchange.json(200, { status: 'ok' });
}

/** `GET /readyz`: it should get traffic. */
export function readiness(exchange: Exchange, services: HttpServices): void {
  if (services.isReady()) return exchange.json(200, { status: 'ready' });
  const reason = services.isDraining() ? 'draining' : 'the cluster is out of reach';
  exchange.error(503, 'unavailable', reason, [['Retry-After', '1']]);
}

/** `GET /metrics` on the main port. */
export async function metricsText(exchange: Exchange, services: HttpServices): Promise<void> {
  if ((await authoriseAdmin(exchange, services)) === undefined) return;
  exchange.text(200, services.metrics.contentType, await services.metrics.render());
}

/** `GET /v1/nodes`: the living nodes, the one that answers first. Times in seconds. */
export async function nodes(exchange: Exchange, services: HttpServices): Promise<void> {
  if ((await authoriseAdmin(exchange, services)) === undefined) return;
  exchange.json(200, { nodes: services.peers.nodes().map((node) => describeNode(node, services)) });
}

/** A node as answers show it. */
export function describeNode(
  node: NodeBeacon,
  { isReady, nodeId }: Pick<HttpServices, 'isReady' | 'nodeId'>,
) {
  const { draining, id, seenAt, startedAt, ...load } = node;
  const now = Date.now();
  return {
    id,
    ...load,
    uptimeSec: Math.max(0, Math.floor((now - startedAt) / 1000)),
    seenSec: Math.max(0, Math.floor((now - seenAt) / 1000)),
    // Of the others only this much is known here.
    ready: id === nodeId ? isReady() : !draining,
    draining,
  };
}

/** `GET /v1/connect` without an upgrade: what the upgrade would be answered, which a browser cannot read from a failed one. */
export async function probeConnect(exchange: Exchange, services: HttpServices): Promise<void> {
  // µWS hands on as a plain request what has no key of 24 letters.
  if (asksForUpgrade(exchange.header('upgrade'))) {
    services.metrics.countRefused(400);
    return exchange.answerWith((res) => refuseUpgrade(res, exchange.corsOrigin));
  }
  const request = {
    host: exchange.header('host'),
    origin: exchange.header('origin'),
    protocols: exchange.header('sec-websocket-protocol'),
    // An upgrade does not know `X-Api-Key`.
    authorization: exchange.header('authorization'),
    query: exchange.query,
  };
  const outcome = await services.handshake.decide(request, false);
  if (outcome.ok) exchange.json(200, { ok: true });
  else exchange.answerWith((res) => refuseHandshake(res, outcome, exchange.corsOrigin));
}
