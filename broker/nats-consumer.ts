import type { Msg } from 'nats';
import { readHeaders } from './nats-body.js';
import type { NatsStream } from './nats-stream.js';

/** Where a message stands in its stream and in what a consumer delivers. */
export interface DeliveredPlace {
  /** Its sequence in the stream. */
  readonly seq: number;
  /** The how manieth the consumer delivered, from 1. Not the next one: some were lost on the way. */
  readonly delivery: number;
  /** How many the consumer still has to deliver after it, as far as the copy of the stream that it reads goes. */
  readonly pending: number;
}

/** The consumer goes when nobody has listened for this long. */
const inactiveNanos = 5e9;

/** A push consumer for one reader: no acknowledgements, in memory, one copy. */
export function consumerRequest(stream: NatsStream, inbox: string, after: number, more: object) {
  return {
    stream_name: stream.name,
    config: {
      deliver_subject: inbox,
      deliver_policy: 'by_start_sequence',
      opt_start_seq: after + 1,
      ack_policy: 'none',
      max_deliver: 1,
      mem_storage: true,
      num_replicas: 1,
      inactive_threshold: inactiveNanos,
      ...more,
    },
  };
}

/**
 * Reads the reply subject of what a consumer delivers: `$JS.ACK.<stream>.<consumer>.<attempts>.<stream seq>.<consumer seq>.<time>.<pending>`, with two more
 * tokens in front of the stream on some servers. Undefined for anything else, such as a heartbeat: a publisher cannot forge it, since the server sets it.
 */
export function deliveredPlace(reply: string | undefined): DeliveredPlace | undefined {
  if (reply?.startsWith('$JS.ACK.') !== true) return undefined;
  const tokens = reply.split('.');
  const first = tokens.length >= 11 ? 7 : 5;
  const [seq, delivery, , pending] = tokens.slice(first).map(Number);
  if (seq === undefined || delivery === undefined || pending === undefined) return undefined;
  return { seq, delivery, pending };
}

/** What a consumer says of itself while it has nothing to deliver. */
export interface ConsumerStatus {
  /** How many it has delivered before this; undefined when it does not say. */
  readonly delivered: number | undefined;
  /** Where to answer so that it goes on, if it waits for that. */
  readonly stalled: string | undefined;
}

const statusControl = 100;

/** Reads a heartbeat, or a question of flow control; undefined for anything else. */
export function consumerStatus(message: Msg): ConsumerStatus | undefined {
  const headers = readHeaders(message);
  if (!headers.ok || headers.value?.code !== statusControl) return undefined;
  const delivered = headers.value.get('Nats-Last-Consumer');
  const stalled = headers.value.get('Nats-Consumer-Stalled');
  return {
    delivered: delivered === '' ? undefined : Number(delivered),
    stalled: stalled === '' ? undefined : stalled,
  };
}
