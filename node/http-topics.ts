import { historyPageMessagesMax, type HistoryPage, type TopicBus } from '../broker/bus.js';
import type { Position } from '../protocol/position.js';
import { failure, type Result } from '../protocol/result.js';
import { isPattern, namespaceOf, parseFilter, parseTopic } from '../protocol/topic.js';
import { transcode } from '../protocol/transcode.js';
import { authorise, authoriseAdmin } from './http-auth.js';
import type { Exchange } from './http-exchange.js';
import { readInteger, readTopic, refuse } from './http-input.js';
import { jsonType } from './http-io.js';
import type { HttpServices } from './http-services.js';

const historyLimitDefault = 100;

/** `GET /v1/topics/{topic}`: `missingNodes` when some did not answer in time, whose subscribers are not counted. */
export async function topicInfo(exchange: Exchange, services: HttpServices): Promise<void> {
  const filter = await readableFilter(exchange, services);
  if (filter === undefined) return;
  const { bus, namespaces, peers } = services;
  const isDurable = namespaces.of(namespaceOf(filter)).delivery === 'durable';
  const [{ missing, value }, head] = await Promise.all([
    peers.countSubscribers(filter),
    isDurable ? newestOf(bus, filter) : undefined,
  ]);
  exchange.json(200, { topic: filter, subscribers: value, ...missingNodes(missing), ...head });
}

/** `GET /v1/topics/{topic}/messages?after=&limit=` */
export async function topicHistory(exchange: Exchange, services: HttpServices): Promise<void> {
  const filter = await readableFilter(exchange, services);
  if (filter === undefined) return;
  const after = readInteger(exchange.params, 'after', [0, Number.MAX_SAFE_INTEGER], 0);
  const limit = readInteger(exchange.params, 'limit', [1, historyPageMessagesMax], historyLimitDefault);
  if (!after.ok) return refuse(exchange, after);
  if (!limit.ok) return refuse(exchange, limit);
  const namespace = namespaceOf(filter);
  if (services.namespaces.of(namespace).delivery !== 'durable') {
    return refuse(exchange, failure('invalid_topic', `${namespace} is live: its messages are not stored`));
  }
  const page = await services.bus.history([filter], after.value, limit.value);
  exchange.text(200, jsonType, historyJson(page, isPattern(filter)));
}

/** `GET /v1/topics/{topic}/subscribers`: user ids, each once; event streams have no presence. `missingNodes` as for the topic. */
export async function topicSubscribers(exchange: Exchange, services: HttpServices): Promise<void> {
  if ((await authoriseAdmin(exchange, services)) === undefined) return;
  const topic = readTopic(exchange, parseTopic);
  if (!topic.ok) return refuse(exchange, topic);
  const namespace = namespaceOf(topic.value);
  if (!services.namespaces.of(namespace).presence) {
    return refuse(exchange, failure('forbidden', `the namespace ${namespace} has no presence`));
  }
  const { missing, value } = await services.peers.usersOf(topic.value);
  exchange.json(200, { users: value, ...missingNodes(missing) });
}

/** Stored payloads go into the answer as they are. */
export function historyJson({ epoch, messages, more }: HistoryPage, withTopic: boolean): string {
  const items = messages.map(({ topic, offset, payload }) => {
    const data = transcode(payload, 'json');
    const text = data.format === 'json' ? data.text : 'null';
    const name = withTopic ? `"topic":${JSON.stringify(topic)},` : '';
    return `{${name}"offset":${offset},"data":${text}}`;
  });
  return `{"epoch":${JSON.stringify(epoch)},"messages":[${items.join(',')}],"more":${more}}`;
}

/** The topic or pattern of the path, which the caller may subscribe to; undefined when it is answered. */
async function readableFilter(exchange: Exchange, services: HttpServices): Promise<string | undefined> {
  const principal = await authorise(exchange, services);
  if (principal === undefined) return undefined;
  const filter: Result<string> = readTopic(exchange, parseFilter);
  const granted =
    filter.ok && !principal.grants.canSubscribe(filter.value)
      ? failure('forbidden', 'no grant to subscribe to this topic')
      : filter;
  if (granted.ok) return granted.value;
  refuse(exchange, granted);
  return undefined;
}

/** The topic's newest stored message, or where its stream is when it has none. */
async function newestOf(bus: TopicBus, filter: string): Promise<Position> {
  const { epoch, messages } = await bus.latest([filter], 1);
  const newest = messages.at(-1);
  return newest === undefined ? bus.head([filter]) : { epoch, offset: newest.offset };
}

function missingNodes(count: number): { missingNodes?: number } {
  return count > 0 ? { missingNodes: count } : {};
}
