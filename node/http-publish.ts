import type { Published } from '../broker/bus.js';
import type { ErrorCode } from '../protocol/codes.js';
import { elements, parseJson } from '../protocol/json-scan.js';
import { validJsonPayload } from '../protocol/payload-json.js';
import type { Payload } from '../protocol/payload.js';
import { failure, success, type Result } from '../protocol/result.js';
import { parseTopic } from '../protocol/topic.js';
import type { Principal } from './auth.js';
import type { Exchange } from './http-exchange.js';
import {
  batchBodyBytesMax,
  isObject,
  lastMember,
  readCall,
  readPayloadCall,
  readTopic,
  refuse,
} from './http-input.js';
import type { HttpServices } from './http-services.js';
import type { PublishRequest } from './publisher.js';

/** Messages of one batch. */
export const batchMessagesMax = 1000;

/** `POST /v1/topics/{topic}/messages` */
export async function publishOne(exchange: Exchange, services: HttpServices): Promise<void> {
  const call = await readPayloadCall(exchange, services);
  if (call === undefined) return;
  const topic = readTopic(exchange, parseTopic);
  if (!topic.ok) return refuse(exchange, topic);
  const { principal, payload } = call;
  const key = exchange.header('idempotency-key');
  const request = { topic: topic.value, payload, id: key === '' ? undefined : key };
  const published = await services.publisher.publish(principal, request);
  if (!published.ok) return refuse(exchange, published);
  exchange.json(published.value === undefined ? 202 : 200, placeOf(topic.value, published.value));
}

/** `POST /v1/publish` */
export async function publishBatch(exchange: Exchange, services: HttpServices): Promise<void> {
  const call = await readCall(exchange, services, batchBodyBytesMax);
  if (call === undefined) return;
  const batch = readBatch(call.text);
  if (!batch.ok) return refuse(exchange, batch);
  // All are handed over in one go: the order within a topic stays that of the batch, and they wait together.
  const results = await publishMessages(call.principal, batch.value, services);
  if (results.length > 0 && results.every(isUnavailable)) {
    return refuse(exchange, failure('unavailable', 'nothing is known to be stored; retry with the same ids'));
  }
  exchange.json(200, { results });
}

export interface BatchMessage {
  readonly topic: string;
  readonly data: Result<Payload>;
  readonly id: string | undefined;
}

/**
 * Reads `{"messages":[{"topic","data","id"?}]}`. The data is sliced out of the text, so that it stays as it was written. A message of the
 * wrong shape refuses the batch, before anything is published; whatever else is wrong with one is told in its result.
 */
export function readBatch(text: string): Result<readonly BatchMessage[]> {
  const parsed = parseJson(text);
  if (!parsed.ok) return parsed;
  const list = isObject(parsed.value) ? parsed.value['messages'] : undefined;
  if (!Array.isArray(list)) return failure('invalid_frame', 'expected {"messages":[…]}');
  if (list.length > batchMessagesMax) {
    return failure('invalid_frame', `a batch has at most ${batchMessagesMax} messages`);
  }
  const messages: BatchMessage[] = [];
  const start = lastMember(text, 0, 'messages')?.start ?? 0;
  for (const span of elements(text, start)) {
    const at = messages.length;
    const fields: unknown = list[at];
    if (!isObject(fields)) return failure('invalid_frame', `messages[${at}] is not an object`);
    const { topic, id } = fields;
    if (typeof topic !== 'string') return failure('invalid_frame', `messages[${at}].topic is not a string`);
    if (id !== undefined && typeof id !== 'string') {
      return failure('invalid_frame', `messages[${at}].id is not a string`);
    }
    const data = lastMember(text, span.start, 'data');
    if (data === undefined) return failure('invalid_frame', `messages[${at}].data is missing`);
    messages.push({ topic, data: validJsonPayload(text.slice(data.start, data.end)), id });
  }
  return success(messages);
}

type MessageResult =
  | { readonly topic: string; readonly error: ErrorCode; readonly message: string }
  | ({ readonly topic: string } & Partial<Published>);

async function publishMessages(
  principal: Principal,
  messages: readonly BatchMessage[],
  { publisher }: Pick<HttpServices, 'publisher'>,
): Promise<MessageResult[]> {
  const requests: PublishRequest[] = [];
  for (const { data, id, topic } of messages) if (data.ok) requests.push({ topic, payload: data.value, id });
  const published = await publisher.publishAll(principal, requests);
  let next = 0;
  return messages.map(({ data, topic }) => {
    const result = data.ok ? published[next++] : data;
    if (result === undefined) throw new Error('a message has no result');
    if (result.ok) return placeOf(topic, result.value);
    return { topic, error: result.code, message: result.message };
  });
}

function isUnavailable(result: MessageResult): boolean {
  return 'error' in result && result.error === 'unavailable';
}

/** A live message has no place. */
function placeOf(topic: string, place: Published | undefined): MessageResult {
  if (place === undefined) return { topic };
  const { epoch, offset, duplicate } = place;
  return { topic, epoch, offset, duplicate };
}
