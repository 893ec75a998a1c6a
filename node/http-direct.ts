import { parseJson } from '../protocol/json-scan.js';
import { validJsonPayload } from '../protocol/payload-json.js';
import type { Payload } from '../protocol/payload.js';
import { failure, success, type Failure, type Result } from '../protocol/result.js';
import { isUserId } from '../protocol/topic.js';
import type { Principal } from './auth.js';
import type { Exchange } from './http-exchange.js';
import {
  batchBodyBytesMax,
  isObject,
  isTextList,
  lastMember,
  readCall,
  readInteger,
  readPayloadCall,
  readUserId,
  refuse,
} from './http-input.js';
import type { HttpServices } from './http-services.js';
import { failureOf, isLarger } from './publisher.js';

/** Users of one call. */
export const directUsersMax = 10_000;
/** Pushes of one call under way at a time: enough to keep a store busy, few enough to leave room for others. */
const pushesAtOnce = 64;

/**
 * `POST /v1/users/{userId}/messages`. Queued unless `?queue=false`, which answers `{"status":"sent","sessions":n}`, or
 * `{"status":"dropped","sessions":0}` when nobody was there to get it.
 */
export async function pushOne(exchange: Exchange, services: HttpServices): Promise<void> {
  const call = await readPayloadCall(exchange, services);
  if (call === undefined) return;
  const { payload, principal } = call;
  const userId = readUserId(exchange);
  const ttlSec = readTtl(exchange, services);
  const queue = exchange.params.get('queue') ?? 'true';
  if (!userId.ok) return refuse(exchange, userId);
  if (!ttlSec.ok) return refuse(exchange, ttlSec);
  if (queue !== 'true' && queue !== 'false') {
    return refuse(exchange, failure('invalid_frame', 'queue is true or false'));
  }
  const refused = refusalOf(principal, userId.value, payload, services);
  if (refused !== undefined) return refuse(exchange, refused);
  try {
    if (queue === 'false') {
      const { sessions } = await services.direct.send(userId.value, payload);
      return exchange.json(200, { status: sessions > 0 ? 'sent' : 'dropped', sessions });
    }
    const { id, sessions } = await services.direct.push(userId.value, payload, ttlSec.value);
    exchange.json(200, { id, status: sessions > 0 ? 'sent' : 'queued', sessions });
  } catch (error) {
    refuse(exchange, failureOf(error, services.log));
  }
}

/** `POST /v1/direct?ttlSec=`: one message to many users, each named once or more and pushed to once. */
export async function pushMany(exchange: Exchange, services: HttpServices): Promise<void> {
  const call = await readCall(exchange, services, batchBodyBytesMax);
  if (call === undefined) return;
  const request = readDirect(call.text);
  const ttlSec = readTtl(exchange, services);
  if (!request.ok) return refuse(exchange, request);
  if (!ttlSec.ok) return refuse(exchange, ttlSec);
  const { payload, userIds } = request.value;
  if (isLarger(payload, services.config.limits.payloadBytesMax)) return refuse(exchange, tooLarge(services));
  const answer = { sent: 0, queued: 0, failed: [] as { userId: string; error: string }[] };
  await inParallel(new Set(userIds), pushesAtOnce, async (userId) => {
    const pushed = await pushTo(call.principal, userId, payload, ttlSec.value, services);
    if (!pushed.ok) answer.failed.push({ userId, error: pushed.code });
    else if (pushed.value > 0) answer.sent++;
    else answer.queued++;
  });
  exchange.json(200, answer);
}

export interface DirectRequest {
  readonly userIds: readonly string[];
  readonly payload: Payload;
}

/** Reads `{"userIds":[…],"data"}`; the data is sliced out of the text. What is wrong with a single user is told of that user. */
export function readDirect(text: string): Result<DirectRequest> {
  const parsed = parseJson(text);
  if (!parsed.ok) return parsed;
  const userIds: unknown = isObject(parsed.value) ? parsed.value['userIds'] : undefined;
  if (!isTextList(userIds)) {
    return failure('invalid_frame', 'expected {"userIds":[…],"data"}, ids as strings');
  }
  if (userIds.length > directUsersMax) {
    return failure('invalid_frame', `a call names at most ${directUsersMax} users`);
  }
  const data = lastMember(text, 0, 'data');
  if (data === undefined) return failure('invalid_frame', 'data is missing');
  const payload = validJsonPayload(text.slice(data.start, data.end));
  return payload.ok ? success({ userIds, payload: payload.value }) : payload;
}

/** Living sessions that it was handed to. Never rejects. */
async function pushTo(
  principal: Principal,
  userId: string,
  payload: Payload,
  ttlSec: number,
  services: HttpServices,
): Promise<Result<number>> {
  if (!isUserId(userId)) return failure('invalid_frame', 'not a user id');
  const refused = refusalOf(principal, userId, payload, services);
  if (refused !== undefined) return refused;
  try {
    const { sessions } = await services.direct.push(userId, payload, ttlSec);
    return success(sessions);
  } catch (error) {
    return failureOf(error, services.log);
  }
}

function refusalOf(
  principal: Principal,
  userId: string,
  payload: Payload,
  services: HttpServices,
): Failure | undefined {
  if (!principal.grants.canPush(userId)) return failure('forbidden', 'no grant to push to this user');
  return isLarger(payload, services.config.limits.payloadBytesMax) ? tooLarge(services) : undefined;
}

function tooLarge({ config }: HttpServices): Failure {
  return failure('payload_too_large', `data has at most ${config.limits.payloadBytesMax} bytes`);
}

function readTtl(exchange: Exchange, { config: { directTtlSec } }: HttpServices): Result<number> {
  return readInteger(exchange.params, 'ttlSec', [1, directTtlSec], directTtlSec);
}

async function inParallel<T>(
  items: Iterable<T>,
  atOnce: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const rest = items[Symbol.iterator]();
  const worker = async (): Promise<void> => {
    for (let next = rest.next(); next.done !== true; next = rest.next()) await work(next.value);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}
