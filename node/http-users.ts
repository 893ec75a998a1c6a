import { nodeOfSession } from '../broker/sessions.js';
import { parseJson } from '../protocol/json-scan.js';
import { failure, success, type Result } from '../protocol/result.js';
import { parseFilter } from '../protocol/topic.js';
import { authoriseAdmin } from './http-auth.js';
import type { Exchange } from './http-exchange.js';
import {
  batchBodyBytesMax,
  isObject,
  isTextList,
  readCall,
  readInteger,
  readUserId,
  refuse,
} from './http-input.js';
import type { HttpServices } from './http-services.js';
import type { Session } from './session.js';
import { filtersOf } from './subscriptions.js';

const onlineLimitDefault = 100;
const onlineLimitMax = 1000;

/** `GET /v1/users/{userId}` */
export async function userSessions(exchange: Exchange, services: HttpServices): Promise<void> {
  if ((await authoriseAdmin(exchange, services)) === undefined) return;
  const userId = readUserId(exchange);
  if (!userId.ok) return refuse(exchange, userId);
  const records = await services.store.sessionsOf(userId.value);
  const sessions = records.map(({ id, login, active, device }) => {
    return { id, node: nodeOfSession(id), login, active, ...(device !== undefined && { device }) };
  });
  exchange.json(200, { online: sessions.length > 0, sessions });
}

/**
 * `DELETE /v1/users/{userId}/sessions`: closes the user's sessions on this node, event streams too, and refuses their tokens until those
 * would have expired.
 */
export async function closeUserSessions(exchange: Exchange, services: HttpServices): Promise<void> {
  if ((await authoriseAdmin(exchange, services)) === undefined) return;
  const userId = readUserId(exchange);
  if (!userId.ok) return refuse(exchange, userId);
  const sessions = sessionsOf(services, userId.value);
  for (const session of sessions) {
    const { expSec, tokenId } = session.principal;
    if (expSec !== undefined) services.authenticator.blockToken(tokenId, expSec);
    session.close('kicked', 'closed by an operator');
  }
  exchange.json(200, { closed: sessions.length });
}

/**
 * `POST /v1/users/{userId}/topics`: subscribes the user's living sessions on this node, whatever their tokens grant. What becomes of it
 * is told to each session in `subscribed`.
 */
export async function subscribeUser(exchange: Exchange, services: HttpServices): Promise<void> {
  await changeTopics(exchange, services, (session, topics) => {
    session.serverTopics ??= new Set();
    for (const topic of topics) session.serverTopics.add(topic);
    const held = new Set(filtersOf(session));
    // Naming a topic that it has already would start that over.
    const requests = topics.filter((topic) => !held.has(topic)).map((topic) => ({ topic }));
    const frame = { type: 'subscribe', topics: requests } as const;
    if (requests.length > 0 && !session.holdFrame(frame)) {
      services.subscriptions.subscribe(session, requests, undefined);
    }
  });
}

/** `DELETE /v1/users/{userId}/topics`: ends subscriptions, whoever asked for them; the client is told with `unsubscribed`. */
export async function unsubscribeUser(exchange: Exchange, services: HttpServices): Promise<void> {
  await changeTopics(exchange, services, (session, topics) => {
    for (const topic of topics) session.serverTopics?.delete(topic);
    if (session.holdFrame({ type: 'unsubscribe', topics })) return;
    const held = new Set(filtersOf(session));
    const ended = topics.filter((topic) => held.has(topic));
    if (ended.length === 0) return;
    services.subscriptions.unsubscribe(session, ended);
    session.send({ type: 'unsubscribed', topics: ended, reason: 'server' });
  });
}

/** `GET /v1/online`: users of the whole cluster, connections of this node. */
export async function onlineCount(exchange: Exchange, services: HttpServices): Promise<void> {
  if ((await authoriseAdmin(exchange, services)) === undefined) return;
  const users = await services.store.onlineCount();
  exchange.json(200, { users, connections: services.connections.size });
}

/** `GET /v1/online/users?cursor=&limit=&prefix=` */
export async function onlineUsers(exchange: Exchange, services: HttpServices): Promise<void> {
  if ((await authoriseAdmin(exchange, services)) === undefined) return;
  const { params } = exchange;
  const limit = readInteger(params, 'limit', [1, onlineLimitMax], onlineLimitDefault);
  if (!limit.ok) return refuse(exchange, limit);
  const cursor = params.get('cursor') ?? '';
  const { users, cursor: next } = await services.store.onlineUsers(
    cursor,
    limit.value,
    params.get('prefix') ?? '',
  );
  exchange.json(200, { users, cursor: next });
}

type TopicOutcome = { readonly topic: string } | { readonly topic: string; readonly error: string };

async function changeTopics(
  exchange: Exchange,
  services: HttpServices,
  change: (session: Session, topics: readonly string[]) => void,
): Promise<void> {
  const call = await readCall(exchange, services, batchBodyBytesMax);
  if (call === undefined) return;
  if (!call.principal.grants.admin) return refuse(exchange, failure('forbidden', 'an admin grant is needed'));
  const userId = readUserId(exchange);
  if (!userId.ok) return refuse(exchange, userId);
  const named = readTopics(call.text, services.config.limits.topicsMax);
  if (!named.ok) return refuse(exchange, named);
  const valid = named.value.filter((topic) => parseFilter(topic).ok);
  const sessions = sessionsOf(services, userId.value);
  if (valid.length > 0) for (const session of sessions) change(session, valid);
  const topics = named.value.map((topic): TopicOutcome => {
    const parsed = parseFilter(topic);
    return parsed.ok ? { topic } : { topic, error: parsed.code };
  });
  exchange.json(200, { topics, sessions: sessions.length });
}

/** Reads `{"topics":[…]}`, each once. */
export function readTopics(text: string, topicsMax: number): Result<readonly string[]> {
  const parsed = parseJson(text);
  if (!parsed.ok) return parsed;
  const topics: unknown = isObject(parsed.value) ? parsed.value['topics'] : undefined;
  if (!isTextList(topics)) return failure('invalid_frame', 'expected {"topics":[…]}, topics as strings');
  if (topics.length > topicsMax) return failure('too_many_topics', `at most ${topicsMax} topics`);
  return success([...new Set(topics)]);
}

/** The user's sessions on this node, event streams among them. */
function sessionsOf({ connections }: HttpServices, userId: string): Session[] {
  return [...connections.all()].filter((session) => session.userId === userId);
}
