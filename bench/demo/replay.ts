import { setTimeout as delay } from 'node:timers/promises';
import type { FeedDirect, FeedEvent, FeedPublish } from './traffic.js';

/** How many events go out together at most when the feed is replayed faster than one by one. */
const groupMax = 100;

export interface ReplayOptions {
  readonly url: string;
  readonly apiKey: string;
  /** How many times faster than it happened; `max`: as fast as the node answers. */
  readonly speed: number | 'max';
  /** Indexes of events before which `before` is to be called, when all events before them have been accepted. */
  readonly stops: ReadonlySet<number>;
  before(index: number): void;
  publishing(index: number): void;
  published(count: number): void;
  readonly signal: AbortSignal;
}

/**
 * Publishes the feed. Events that are due together go out together: topic messages in one ordered batch, direct
 * messages side by side but one after the other for each user. The next group starts when all of one was
 * accepted, so the order holds for each topic and each user.
 * @throws Error when the node refuses anything
 */
export async function replay(feed: readonly FeedEvent[], options: ReplayOptions): Promise<void> {
  const { speed, signal } = options;
  const start = performance.now();
  const dueInMs = (event: FeedEvent) =>
    speed === 'max' ? 0 : event.at / speed - (performance.now() - start);
  for (let next = 0; next < feed.length;) {
    const first = feed[next];
    if (first === undefined) break;
    const wait = dueInMs(first);
    if (wait > 0) await delay(wait, undefined, { signal });
    signal.throwIfAborted();
    if (options.stops.has(next)) options.before(next);
    const group = [first];
    for (let i = next + 1; group.length < groupMax && !options.stops.has(i); i++) {
      const event = feed[i];
      if (event === undefined || dueInMs(event) > 0) break;
      group.push(event);
    }
    for (let i = 0; i < group.length; i++) options.publishing(next + i);
    await send(group, options);
    next += group.length;
    options.published(next);
  }
  if (options.stops.has(feed.length)) options.before(feed.length);
}

async function send(group: readonly FeedEvent[], options: ReplayOptions): Promise<void> {
  const publishes = group.filter((event) => event.kind === 'publish');
  const byUser = new Map<string, FeedDirect[]>();
  for (const event of group) {
    if (event.kind === 'direct') byUser.set(event.user, [...(byUser.get(event.user) ?? []), event]);
  }
  const inTurn = async (messages: readonly FeedDirect[]) => {
    for (const { user, data } of messages) {
      await post(options, `/v1/users/${encodeURIComponent(user)}/messages`, data);
    }
  };
  await Promise.all([publish(publishes, options), ...[...byUser.values()].map(inTurn)]);
}

async function publish(events: readonly FeedPublish[], options: ReplayOptions): Promise<void> {
  const [first] = events;
  if (first === undefined) return;
  if (events.length === 1) {
    await post(options, `/v1/topics/${encodeURIComponent(first.topic)}/messages`, first.data);
    return;
  }
  const messages = events.map(({ topic, data }) => ({ topic, data }));
  const answer = await post(options, '/v1/publish', { messages });
  const results = resultsOf(answer);
  if (results.length !== events.length) {
    throw new Error(`/v1/publish answered ${results.length} results to ${events.length} messages`);
  }
  for (const [i, result] of results.entries()) {
    if (result.error === undefined && result.topic === events[i]?.topic) continue;
    throw new Error(`/v1/publish answered ${JSON.stringify(result)} to a message on ${events[i]?.topic}`);
  }
}

interface PublishResult {
  readonly topic?: string;
  readonly error?: unknown;
}

function resultsOf(answer: unknown): PublishResult[] {
  if (typeof answer === 'object' && answer !== null && 'results' in answer && Array.isArray(answer.results)) {
    return answer.results as PublishResult[];
  }
  throw new Error(`/v1/publish answered without results: ${JSON.stringify(answer).slice(0, 200)}`);
}

/** @returns the answer's JSON. @throws Error on any status but 2xx */
async function post(options: ReplayOptions, path: string, body: unknown): Promise<unknown> {
  const response = await fetch(options.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${options.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: options.signal,
  }).catch((cause: unknown) => {
    throw new Error(`POST ${path} had no answer`, { cause });
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`POST ${path} was answered ${response.status}: ${text.slice(0, 300)}`);
  return JSON.parse(text);
}
