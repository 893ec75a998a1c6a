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

const onlineLimitDefault = 100;
const onlineLimitMax = 1000;

/** `GET /v1/users/{userId}`: sessions of nodes that are known to be gone are left out. */
export async function userSessions(exchange: Exchange, services: HttpServices): Promise<void> {
  if ((await authoriseAdmin(exchange, services)) === undefined) return;
  const userId = readUserId(exchange);
  if (!userId.ok) return refuse(exchange, userId);
  const records = services.peers.living(await services.store.sessionsOf(userId.value));
  const sessions = records.map(({ id, login, active, device }) => {
    return { id, node: nodeOfSession(id), login, active, ...(device !== undefined && { device }) };
  });
  exchange.json(200, { online: sessions.length > 0, sessions });
}

/**
 * `DELETE /v1/users/{userId}/sessions`: closes the user's sessions on all nodes, event streams too, and refuses their tokens until those
 * would have expired. 503 when a node did not answer: then it is to be called again.
 */
export async function closeUserSessions(exchange: Exchange, services: HttpServices): Promise<void> {
  if ((await authoriseAdmin(exchange, services)) === undefined) return;
  const userId = readUserId(exchange);
  if (!userId.ok) return refuse(exchange, userId);
  exchange.json(200, { closed: await services.peers.kick(userId.value) });
}

/**
 * `POST /v1/users/{userId}/topics`: subscribes the user's living sessions on all nodes, whatever their tokens grant. What becomes of it
 * is told to each session in `subscribed`.
 */
export async function subscribeUser(exchange: Exchange, services: HttpServices): Promise<void> {
  await changeTopics(exchange, services, (userId, topics) => services.peers.subscribe(userId, topics));
}

/** `DELETE /v1/users/{userId}/topics`: ends subscriptions, whoever asked for them; the client is told with `unsubscribed`. */
export async function unsubscribeUser(exchange: Exchange, services: HttpServices): Promise<void> {
  await changeTopics(exchange, services, (userId, topics) => services.peers.unsubscribe(userId, topics));
}

/** `GET /v1/online`: users and connections of the whole cluster; those of other nodes as they last said. */
export async function onlineCount(exchange: Exchange, services: HttpServices): Promise<void> {
  if ((await authoriseAdmin(exchange, services)) === undefined) return;
  const users = await services.store.onlineCount();
  const connections = services.peers.nodes().reduce((sum, node) => sum + node.connections, 0);
  exchange.json(200, { users, connections });
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
  change: (userId: string, topics: readonly string[]) => Promise<number>,
): Promise<void> {
  const call = await readCall(exchange, services, batchBodyBytesMax);
  if (call === undefined) return;
  if (!call.principal.grants.admin) return refuse(exchange, failure('forbidden', 'an admin grant is needed'));
  const userId = readUserId(exchange);
  if (!userId.ok) return refuse(exchange, userId);
  const named = readTopics(call.text, services.config.limits.topicsMax);
  if (!named.ok) return refuse(exchange, named);
  const valid = named.value.filter((topic) => parseFilter(topic).ok);
  // Without valid topics it still tells how many sessions there are.
  const sessions = await change(userId.value, valid);
  const topics = named.value.map((topic): TopicOutcome => {
    const parsed = parseFilter(topic);
    return parsed.ok ? { topic } : { topic, error: parsed.code };
  });
  exchange.json(200, { topics, sessions });
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
