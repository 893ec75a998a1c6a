import { jsonCodec } from '../protocol/codec-json.js';
import { msgpackCodec } from '../protocol/codec-msgpack.js';
import type { Limits } from '../protocol/limits.js';
import type { Connections } from './connections.js';
import type { FrameHandler } from './frame-handler.js';
import type { Handshake, HandshakeOutcome, HandshakeRequest } from './handshake.js';
import { sendError } from './http-io.js';
import { headerBlockTooLarge, isHeaderBlockTooLarge } from './header-block.js';
import type { Logger } from './log.js';
import type { Metrics } from './metrics.js';
import type { Session } from './session.js';
import type { TopicPublisher } from './topic-publisher.js';
import type { HttpRequest, HttpResponse, TemplatedApp, us_socket_context_t } from './uws.js';
import { WsOutlet } from './ws-outlet.js';

/** What µWS keeps with a socket. */
export interface SocketData {
  /** Until `open`: sessions live long, and there are very many of them. */
  accepted: (HandshakeOutcome & { readonly ok: true }) | undefined;
  /** From `open` on. */
  session: Session | undefined;
  outlet: WsOutlet | undefined;
}

export interface WsEdgeOptions {
  readonly handshake: Handshake;
  readonly connections: Connections;
  readonly frames: FrameHandler;
  readonly topics: TopicPublisher;
  readonly limits: Limits;
  readonly metrics: Pick<Metrics, 'countClose' | 'countRefused'>;
  readonly log: Logger;
}

/**
 * µWS has an idle cut of its own, without a close code. It only backs up the node's (`heartbeat.ts`), which is at most 900 s.
 */
const idleSecBackstop = 960;

/** Registers `/v1/connect`: the upgrade, and what happens on the sockets. */
export function serveWebSockets(app: TemplatedApp, options: WsEdgeOptions): void {
  const { connections, frames, limits, metrics } = options;
  app.ws<SocketData>('/v1/connect', {
    // A frame that is too large, but not absurdly so, is read and answered `payload_too_large`: µWS would cut the line without a word.
    maxPayloadLength: limits.frameBytesMax + limits.payloadBytesMax,
    maxBackpressure: limits.bufferBytesMax,
    closeOnBackpressureLimit: 0,
    idleTimeout: idleSecBackstop,
    sendPingsAutomatically: false,
    upgrade: (res, req, context) => upgrade(res, req, context, options),
    open: (ws) => {
      const data = ws.getUserData();
      const { accepted } = data;
      // Without it there is no upgrade.
      if (accepted === undefined) return;
      data.accepted = undefined;
      const { device, format, principal, topics } = accepted;
      data.outlet = new WsOutlet(ws, format === 'json' ? jsonCodec : msgpackCodec);
      // Closing at once (too many connections) calls `close` before `session` is known there.
      const session = connections.open({ principal, device, format }, topics, data.outlet);
      data.session = session;
      if (data.outlet.isClosed) connections.closed(session);
    },
    message: (ws, message, isBinary) => {
      const { session } = ws.getUserData();
      if (session !== undefined) frames.receive(session, new Uint8Array(message), isBinary);
    },
    dropped: (ws) => {
      const { session } = ws.getUserData();
      if (session !== undefined) options.topics.afterDrop(() => session.onDropped());
    },
    drain: (ws) => {
      if (ws.getBufferedAmount() === 0) ws.getUserData().session?.onDrained();
    },
    ping: (ws) => touch(ws.getUserData().session),
    pong: (ws) => touch(ws.getUserData().session),
    close: (ws, code) => {
      const { outlet, session } = ws.getUserData();
      outlet?.onClosed();
      metrics.countClose(code);
      if (session !== undefined) connections.closed(session);
    },
  });
}

function touch(session: Session | undefined): void {
  if (session !== undefined) session.active = Date.now();
}

function upgrade(
  res: HttpResponse,
  req: HttpRequest,
  context: us_socket_context_t,
  options: WsEdgeOptions,
): void {
  const { handshake, limits, log, metrics } = options;
  if (isHeaderBlockTooLarge(req, limits.headerBytesMax)) {
    metrics.countRefused(431);
    return sendError(res, 431, 'header_too_large', headerBlockTooLarge);
  }
  // µWS looks at the key only, which a proxy passes on that takes the upgrade out of the request.
  if (!asksForUpgrade(req.getHeader('upgrade')) || req.getHeader('sec-websocket-version') !== '13') {
    metrics.countRefused(400);
    return refuseUpgrade(res, undefined);
  }
  // Everything of the request has to be read now: it is gone after the first await.
  const request = readHandshake(req, req.getHeader('sec-websocket-protocol'));
  const key = req.getHeader('sec-websocket-key');
  const extensions = req.getHeader('sec-websocket-extensions');
  let aborted = false;
  res.onAborted(() => {
    aborted = true;
  });
  handshake.decide(request, true).then(
    (outcome) => {
      // The client left while its token was checked: `res` must not be touched any more.
      if (aborted) return;
      if (outcome.ok) {
        const data: SocketData = { accepted: outcome, session: undefined, outlet: undefined };
        // Not inside `cork`, though µWS shows it so: `cork` goes on to read the state of the HTTP socket, which the upgrade has given back, and
        // closes the connection when that memory happens to say so (one first connection in eight of a fresh process).
        res.upgrade(data, key, outcome.protocol ?? '', extensions, context);
      } else {
        metrics.countRefused(outcome.status);
        refuseHandshake(res, outcome, undefined);
      }
    },
    (error: unknown) => {
      log.error({ err: error }, 'unexpected fault in a handshake');
      if (!aborted) sendError(res, 500, 'internal', 'internal error');
    },
  );
}

/** Whether an `Upgrade` header is that of a WebSocket. */
export function asksForUpgrade(header: string): boolean {
  return header.toLowerCase() === 'websocket';
}

/** Answers an upgrade that is malformed. */
export function refuseUpgrade(res: HttpResponse, corsOrigin: string | undefined): void {
  const headers = [['Sec-WebSocket-Version', '13']] as const;
  sendError(res, 400, 'invalid_frame', malformedUpgrade, { headers, corsOrigin });
}

const malformedUpgrade =
  'expected a WebSocket upgrade of version 13: Upgrade, Sec-WebSocket-Key, Sec-WebSocket-Version';

/** The parts of a request that a handshake is decided on. */
export function readHandshake(req: HttpRequest, protocols: string): HandshakeRequest {
  return {
    host: req.getHeader('host'),
    origin: req.getHeader('origin'),
    protocols,
    authorization: req.getHeader('authorization'),
    query: req.getQuery(),
  };
}

/** Answers a refused handshake, the same for the upgrade, the probe without one, and event streams. */
export function refuseHandshake(
  res: HttpResponse,
  outcome: HandshakeOutcome & { readonly ok: false },
  corsOrigin: string | undefined,
): void {
  const code = handshakeCodes[outcome.status];
  const headers: [string, string][] = [];
  if (outcome.retryAfterSec !== undefined) headers.push(['Retry-After', String(outcome.retryAfterSec)]);
  if (outcome.status === 401) headers.push(['WWW-Authenticate', 'Bearer']);
  sendError(res, outcome.status, code, outcome.message, { headers, corsOrigin });
}

const handshakeCodes = {
  400: 'invalid_frame',
  401: 'unauthorized',
  403: 'forbidden',
  503: 'unavailable',
} as const;
