import { z } from 'zod';
import { jsonPayload } from '../protocol/payload-json.js';
import { msgpackPayload } from '../protocol/payload-msgpack.js';
import type { Payload } from '../protocol/payload.js';
import { isUserId, parseFilter } from '../protocol/topic.js';

/** What one node tells another to do, as it travels: JSON. */
const text = (charsMax: number) => z.string().max(charsMax);
const sessions = z.array(text(256)).max(100_000);
const userId = z.string().refine(isUserId);
const filter = z.string().refine((value) => parseFilter(value).ok);
const token = z.object({ id: text(128), expSec: z.number() });
const tokens = z.array(token);
/** Checked on receipt: payloads are put into frames as they are. */
const payload = z
  .discriminatedUnion('format', [
    z.object({ format: z.literal('json'), text: z.string() }),
    z.object({ format: z.literal('msgpack'), base64: z.string() }),
  ])
  .transform((wire, context): Payload => {
    const read = wire.format === 'json' ? jsonPayload(wire.text) : msgpackPayload(fromBase64(wire.base64));
    if (read.ok) return read.value;
    context.addIssue({ code: 'custom', message: read.message });
    return z.NEVER;
  });

const commandSchema = z.discriminatedUnion('type', [
  /** A queued direct message for these sessions; `prev` as in `QueuedPush`. Answered by how many exist. */
  z.object({
    type: z.literal('hint'),
    sessions,
    id: z.number().int().positive(),
    prev: z.number().int().nonnegative(),
    payload,
  }),
  /** A direct message that is kept nowhere. Answered by `sentSchema`. */
  z.object({ type: z.literal('send'), sessions, payload }),
  /** Answered by the tokens that the user's sessions of the node have shown. */
  z.object({ type: z.literal('tokens'), userId }),
  /** Refuses these tokens and those of the user's sessions, and closes the sessions. Answered by how many. */
  z.object({ type: z.literal('kick'), userId, tokens }),
  /** Answered by all tokens that the node refuses. */
  z.object({ type: z.literal('blocked') }),
  /** Subscribes the user's sessions, or ends their subscriptions. Answered by how many sessions there are. */
  z.object({ type: z.literal('subscribe'), userId, topics: z.array(filter) }),
  z.object({ type: z.literal('unsubscribe'), userId, topics: z.array(filter) }),
  /** Answered by the number of the topic's subscribers. */
  z.object({ type: z.literal('count'), topic: filter }),
  /** Answered by the ids of the users who are subscribed to the topic. */
  z.object({ type: z.literal('users'), topic: filter }),
  /** Answered by `NodeStats`. */
  z.object({ type: z.literal('stats') }),
]);

export type PeerCommand = z.output<typeof commandSchema>;
export type BlockedToken = z.infer<typeof token>;

/** How many sessions took it, and which are not there (any more). */
export interface Sent {
  readonly sent: number;
  readonly gone: readonly string[];
}

const counts = z.record(z.string(), z.number());

const nodeStatsSchema = z.object({
  id: z.string(),
  counters: counts,
  /** By close code. */
  closed: counts,
  topics: z.array(
    z.object({
      filters: z.array(z.string()),
      messagesPerSec: z.number(),
      messages: z.number(),
      subscribers: z.number(),
    }),
  ),
});

/** What a node has counted since it started, and the hottest of the topics that it hosts. */
export type NodeStats = z.infer<typeof nodeStatsSchema>;
export type HotTopic = NodeStats['topics'][number];

const sentSchema = z.object({ sent: z.number(), gone: z.array(z.string()) });

/** A command of another node, which may be of another version; undefined when it is none that this one knows. */
export function readCommand(value: unknown): PeerCommand | undefined {
  return commandSchema.safeParse(value).data;
}

/** A command as it travels. */
export function wireCommand(command: PeerCommand): unknown {
  if (!('payload' in command)) return command;
  const { payload: given } = command;
  if (given.format === 'json') return command;
  return { ...command, payload: { format: 'msgpack', base64: Buffer.from(given.bytes).toString('base64') } };
}

export const answers = {
  count: z.number(),
  sent: sentSchema,
  stats: nodeStatsSchema,
  tokens,
  users: z.array(z.string()),
} as const;

function fromBase64(base64: string): Uint8Array {
  return Buffer.from(base64, 'base64');
}
