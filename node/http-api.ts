import { loadConsoleFiles, serveConsoleFile } from './console-files.js';
import { isAllowedSite } from './http-auth.js';
import { health, metricsText, nodes, probeConnect, readiness } from './http-cluster.js';
import { pushMany, pushOne } from './http-direct.js';
import { Exchange } from './http-exchange.js';
import { refuse } from './http-input.js';
import { sendPreflight } from './http-io.js';
import { publishBatch, publishOne } from './http-publish.js';
import { headerBlockTooLarge, isHeaderBlockTooLarge } from './header-block.js';
import type { HttpServices } from './http-services.js';
import { stats } from './http-stats.js';
import { topicHistory, topicInfo, topicSubscribers } from './http-topics.js';
import {
  closeUserSessions,
  onlineCount,
  onlineUsers,
  subscribeUser,
  unsubscribeUser,
  userSessions,
} from './http-users.js';
import { failureOf } from './publisher.js';
import { openEvents } from './sse.js';
import type { HttpRequest, HttpResponse, TemplatedApp } from './uws.js';

export type { HttpServices } from './http-services.js';

type Handler = (exchange: Exchange, services: HttpServices) => void | Promise<void>;

interface Route {
  readonly GET?: Handler;
  readonly POST?: Handler;
  readonly DELETE?: Handler;
  /** Answers whatever site a request comes from: it tells nothing, and probes do not know the node's name. */
  readonly anySite?: boolean;
  /** It is about users, of whom a cluster without Redis knows nothing. */
  readonly ofUsers?: boolean;
  /** An answer that has no end cannot be measured for HEAD. */
  readonly endless?: boolean;
}

const routes: Readonly<Record<string, Route>> = {
  '/v1/publish': { POST: publishBatch },
  '/v1/direct': { POST: pushMany, ofUsers: true },
  '/v1/topics/:topic': { GET: topicInfo },
  '/v1/topics/:topic/messages': { GET: topicHistory, POST: publishOne },
  '/v1/topics/:topic/subscribers': { GET: topicSubscribers },
  '/v1/users/:user': { GET: userSessions, ofUsers: true },
  '/v1/users/:user/messages': { POST: pushOne, ofUsers: true },
  '/v1/users/:user/sessions': { DELETE: closeUserSessions },
  '/v1/users/:user/topics': { POST: subscribeUser, DELETE: unsubscribeUser },
  '/v1/online': { GET: onlineCount, ofUsers: true },
  '/v1/online/users': { GET: onlineUsers, ofUsers: true },
  '/v1/nodes': { GET: nodes },
  '/v1/stats': { GET: stats },
  // It answers by the handshake's own rules.
  '/v1/connect': { GET: probeConnect, anySite: true },
  '/v1/events': { GET: openEvents, anySite: true, endless: true },
  '/healthz': { GET: health, anySite: true },
  '/readyz': { GET: readiness, anySite: true },
};

/** Registers the HTTP API and the console. WebSocket routes come first. */
export function serveHttp(app: TemplatedApp, services: HttpServices): void {
  for (const [pattern, route] of Object.entries(routes)) serveRoute(app, pattern, route, services);
  if (services.config.console) {
    for (const [path, file] of loadConsoleFiles(services.log)) {
      serveRoute(app, path, { GET: (exchange) => serveConsoleFile(exchange, file) }, services);
    }
  }
  if (services.config.metricsPort === undefined) serveRoute(app, '/metrics', { GET: metricsText }, services);
  app.any('/*', (res, req) => {
    exchangeOf(res, req, '', services).error(404, 'not_found', 'there is nothing here');
  });
}

function serveRoute(app: TemplatedApp, pattern: string, route: Route, services: HttpServices): void {
  const methods = allowedMethods(route);
  const serve = (handler: Handler) => (res: HttpResponse, req: HttpRequest) => {
    const exchange = exchangeOf(res, req, pattern, services);
    if (isHeaderBlockTooLarge(req, services.config.limits.headerBytesMax)) {
      return exchange.error(431, 'header_too_large', headerBlockTooLarge);
    }
    if (route.ofUsers === true && !services.hasUsers) {
      return exchange.error(501, 'not_implemented', 'this cluster has no Redis: topics only');
    }
    if (route.anySite === true || isAllowedSite(exchange, services)) run(handler, exchange, services);
  };
  if (route.GET !== undefined) app.get(pattern, serve(route.GET));
  if (route.GET !== undefined && route.endless !== true) app.head(pattern, serve(route.GET));
  if (route.POST !== undefined) app.post(pattern, serve(route.POST));
  if (route.DELETE !== undefined) app.del(pattern, serve(route.DELETE));
  app.options(pattern, (res, req) => {
    const { corsOrigin } = exchangeOf(res, req, pattern, services);
    sendPreflight(res, methods, corsOrigin);
  });
  app.any(pattern, (res, req) => {
    const exchange = exchangeOf(res, req, pattern, services);
    exchange.error(405, 'method_not_allowed', `expected ${methods}`, [['Allow', methods]]);
  });
}

/** A handler's promise ends here, whatever becomes of it. */
function run(handler: Handler, exchange: Exchange, services: HttpServices): void {
  const settle = async (): Promise<void> => handler(exchange, services);
  settle().catch((error: unknown) => refuse(exchange, failureOf(error, services.log)));
}

function exchangeOf(res: HttpResponse, req: HttpRequest, pattern: string, services: HttpServices): Exchange {
  const segments = pattern.split(':').length - 1;
  return new Exchange(res, req, segments, (host, origin) => services.sameSite.corsOrigin(host, origin));
}

function allowedMethods({ DELETE, GET, POST, endless }: Route): string {
  return [
    GET !== undefined && 'GET',
    GET !== undefined && endless !== true && 'HEAD',
    POST !== undefined && 'POST',
    DELETE !== undefined && 'DELETE',
    'OPTIONS',
  ]
    .filter((method) => method !== false)
    .join(', ');
}
