import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

/** What things cost, with the name that each has in the file of costs. µs are of one core. */
export const costSpecs = {
  deliveryWriteUs: 'µs: node, to write to one socket once, whatever the number of messages',
  deliveryMessageUs: 'µs: node, for each message in such a write',
  nodeUsPerSec: 'µs: node, for each second, with nobody connected',
  messageUs: 'µs: node, to receive a message of a hosted topic and to make its frame',
  messageWakeUs: 'µs: node, to wake up for messages that came together, and to go to sleep again',
  publishUs: 'µs: node, to take a durable message over HTTP, one a request',
  publishBatchedUs: 'µs: node, the same, many a request',
  publishFrameUs: 'µs: node, the same over an open WebSocket',
  publishWakeUs: 'µs: node, to wake up for publishes that came together, and for their acknowledgements',
  handshakeUs: 'µs: node, for a connection until `welcome`',
  sessionUsPerSec:
    'µs: node, for each second of a quiet session: pings and refreshes; nodeUsPerSec is not in it',
  pushUs: 'µs: nodes together, for a push to one user and its acknowledgement',
  beaconUs: 'µs: node, to read what another node says of itself',
  sessionBytes: 'B: node, a session with two topics',
  subscriptionBytes: 'B: node, each further topic of a session',
  hostedTopicBytes: 'B: node, a topic with a subscriber, its ring empty',
  ringMessageBytes: 'B: node, a message in a ring, beyond its payload and its frame',
  nodeBaseBytes: 'B: node, with nobody connected',
  coldReadMs: 'ms: node, to read the stored messages of one topic; four at once',
  natsPublishUs: 'µs: NATS, a durable message with one copy',
  natsPublishReplicatedUs: 'µs: NATS servers together, a durable message with three copies',
  natsMessageUs: 'µs: NATS, a message to one receiver',
  natsSubscriptionBytes: 'B: NATS server, a subscription',
  natsSubjectBytes: 'B: NATS server, memory for each topic of a stream',
  natsStoredBytes: 'B: NATS server, disk for each stored message beyond its payload and topic',
  natsBaseBytes: 'B: NATS server, with nobody connected',
  natsStreamPerSec: '/s: durable messages that one stream with three copies takes',
  redisUserBytes: 'B: Redis, a user with one session, with the device named',
  redisOnlineBytes: 'B: Redis, the part of it that lies on the 16 keys of those online',
  redisSessionBytes: 'B: Redis, each further session of a user',
  redisQueuedBytes: 'B: Redis, a push of 100 bytes that waits',
  redisConnectUs: 'µs: Redis, a connect; as much again for its end',
  redisRefreshUs: 'µs: Redis, a refresh of a session',
  redisRefreshesPerMin: '/min: refreshes of a session',
  redisCallsPerRefresh: 'calls of Redis for a refresh: those of a hundred users may be one',
  redisPushUs: 'µs: Redis, a push and its acknowledgement',
} as const;

export type CostName = keyof typeof costSpecs;
export type Costs = Readonly<Record<CostName, number>>;
export const costNames = Object.keys(costSpecs) as readonly CostName[];

/** A cost and why it is believed. */
export interface KnownCost {
  readonly value: number;
  /** `derived`: worked out from something measured. `assumed`: nobody has measured it. */
  readonly basis: 'measured' | 'derived' | 'assumed';
  /** For people: the document, or the file and scenario. */
  readonly from: string;
  readonly machine?: string | undefined;
  /** ISO 8601. */
  readonly date?: string | undefined;
}

export type KnownCosts = Readonly<Record<CostName, KnownCost>>;

const knownCost = z.strictObject({
  value: z.number().nonnegative(),
  basis: z.enum(['measured', 'derived', 'assumed']),
  from: z.string().min(1),
  machine: z.string().optional(),
  date: z.string().optional(),
});

const costsSchema = z.strictObject({
  format: z.literal(1),
  costs: z.record(z.enum(costNames as readonly [CostName, ...CostName[]]), knownCost),
});

/** @throws Error that says what is wrong with the text */
export function parseCosts(text: string): KnownCosts {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new Error('not JSON', { cause });
  }
  const parsed = costsSchema.safeParse(value);
  if (parsed.success) return parsed.data.costs;
  throw new Error(`not a file of costs: ${z.prettifyError(parsed.error).replaceAll('\n', ' ')}`);
}

/** Those that the product comes with. */
export function shippedCosts(): KnownCosts {
  const folder = dirname(fileURLToPath(import.meta.url));
  return parseCosts(readFileSync(join(folder, 'costs.json'), 'utf8'));
}

export function formatCosts(costs: KnownCosts): string {
  return `${JSON.stringify({ format: 1, costs }, null, 2)}\n`;
}

export function valuesOf(costs: KnownCosts): Costs {
  return Object.fromEntries(costNames.map((name) => [name, costs[name].value])) as Costs;
}

/** One line for people. */
export function sourceOf({ basis, date, from, machine }: KnownCost): string {
  return [basis, from, machine, date?.slice(0, 10)].filter((part) => part !== undefined).join('; ');
}
