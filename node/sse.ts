import type { TopicRequest } from '../protocol/frames.js';
import { grammarLimits } from '../protocol/limits.js';
import type { Position } from '../protocol/position.js';
import { failure, type Failure } from '../protocol/result.js';
import { namespaceOf, parseFilter } from '../protocol/topic.js';
import type { HandshakeOutcome } from './handshake.js';
import { authorizationOf } from './http-auth.js';
import type { Exchange } from './http-exchange.js';
import { refuse } from './http-input.js';
import { writeHead } from './http-io.js';
import type { HttpServices } from './http-services.js';
import type { Session } from './session.js';
import { SseOutlet } from './sse-outlet.js';
import { eventIdBytesMax, parseEventId, positionBytes } from './sse-positions.js';
import type { HttpResponse } from './uws.js';
import { refuseHandshake } from './ws-edge.js';

type Accepted = HandshakeOutcome & { readonly ok: true };

/** Browsers of streams that ended together do not come back together. */
const retryMs = { min: 1000, spread: 3000 };
/** What is counted for a client that left: WebSocket's "going away". */
const leftCode = 1001;

/**
 * `GET /v1/events?topics=`: the same messages as Server-Sent Events, for clients without WebSocket, let in by the same rules. A message is a
 * default event whose data is the `msg` frame; every other frame is an event named after its type. The `id` of an event holds the positions
 * of all durable topics of the stream; `Last-Event-ID`, or `?lastEventId=` for clients that cannot set it, resumes them. A stream has no
 * presence and gets no direct messages, because it could not acknowledge them.
 */
export async function openEvents(exchange: Exchange, services: HttpServices): Promise<void> {
  const lastEventId = exchange.header('last-event-id') || (exchange.params.get('lastEventId') ?? '');
  const positions = parseEventId(lastEventId);
  const outcome = await services.handshake.decide(
    {
      host: exchange.header('host'),
      origin: exchange.header('origin'),
      protocols: '',
      authorization: authorizationOf(exchange),
      query: exchange.query,
    },
    true,
  );
  if (!outcome.ok) {
    services.metrics.countRefused(outcome.status);
    return exchange.answerWith((res) => refuseHandshake(res, outcome, exchange.corsOrigin));
  }
  if (!positions.ok) return refuse(exchange, positions);
  const topics = resumed(outcome.topics, positions.value);
  const refused = refusalOf(topics, services);
  if (refused !== undefined) return refuse(exchange, refused);
  start(exchange, services, outcome, topics);
}

function start(
  exchange: Exchange,
  services: HttpServices,
  { principal, device, format }: Accepted,
  topics: readonly TopicRequest[],
): void {
  const { connections, metrics } = services;
  let session: Session | undefined;
  let outlet: SseOutlet | undefined;
  const ended = (code: number): void => {
    metrics.countClose(code);
    if (session !== undefined) connections.closed(session);
  };
  exchange.handOver(
    (res) => {
      writeStreamHead(res, exchange.corsOrigin);
      outlet = new SseOutlet(res, {
        bufferBytesMax: services.config.limits.bufferBytesMax,
        onClosed: ended,
        onDrained: () => session?.onDrained(),
        onOverflow: () => metrics.counters.slowCloses++,
      });
      outlet.writeRetry(retryMs.min + Math.random() * retryMs.spread);
      session = connections.openStream({ principal, device, format }, topics, outlet);
      // It may have ended before it was known here.
      if (outlet.isClosed) connections.closed(session);
    },
    () => {
      outlet?.onAborted();
      ended(leftCode);
    },
  );
}

/** Requests with the positions of the last event; positions of topics that are not asked for any more are left out. */
export function resumed(
  requests: readonly TopicRequest[],
  positions: ReadonlyMap<string, Position>,
): TopicRequest[] {
  return requests.map((request) => ({ ...request, ...positions.get(request.topic) }));
}

/** The id of the stream's events has to fit into a header. */
function refusalOf(topics: readonly TopicRequest[], services: HttpServices): Failure | undefined {
  const { bus, namespaces } = services;
  let bytes = 0;
  for (const { topic } of topics) {
    const namespace = namespaceOf(topic);
    if (!parseFilter(topic).ok || namespaces.of(namespace).delivery !== 'durable') continue;
    const epoch = bus.floor(namespace)?.epoch ?? '-'.repeat(grammarLimits.epochCharsMax);
    bytes += positionBytes(topic, epoch);
  }
  if (bytes <= eventIdBytesMax) return undefined;
  const message = `the positions of the durable topics of a stream have at most ${eventIdBytesMax} bytes`;
  return failure('too_many_topics', message);
}

function writeStreamHead(res: HttpResponse, corsOrigin: string | undefined): void {
  res.cork(() => {
    // Proxies that gather an answer before they pass it on would keep the events to themselves.
    writeHead(res, 200, { corsOrigin, headers: [['X-Accel-Buffering', 'no']] });
    res.writeHeader('Content-Type', 'text/event-stream');
  });
}
