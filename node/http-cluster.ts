import { authoriseAdmin, authorizationOf } from './http-auth.js';
import type { Exchange } from './http-exchange.js';
import type { HttpServices } from './http-services.js';
import { version } from './version.js';
import { refuseHandshake } from './ws-edge.js';

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

/** `GET /v1/nodes`: this node. Times in seconds. */
export async function nodes(exchange: Exchange, services: HttpServices): Promise<void> {
  if ((await authoriseAdmin(exchange, services)) === undefined) return;
  const { channels, connections, nodeId, startedAt } = services;
  const node = {
    id: nodeId,
    version,
    connections: connections.size,
    channels: channels.size,
    uptimeSec: Math.floor((Date.now() - startedAt) / 1000),
    ready: services.isReady(),
    draining: services.isDraining(),
  };
  exchange.json(200, { nodes: [node] });
}

/** `GET /v1/connect` without an upgrade: what the upgrade would be answered, which a browser cannot read from a failed one. */
export async function probeConnect(exchange: Exchange, services: HttpServices): Promise<void> {
  const request = {
    host: exchange.header('host'),
    origin: exchange.header('origin'),
    protocols: exchange.header('sec-websocket-protocol'),
    authorization: authorizationOf(exchange),
    query: exchange.query,
  };
  const outcome = await services.handshake.decide(request, false);
  if (outcome.ok) exchange.json(200, { ok: true });
  else exchange.answerWith((res) => refuseHandshake(res, outcome, exchange.corsOrigin));
}
