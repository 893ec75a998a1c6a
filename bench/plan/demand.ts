import { encodeJsonServer } from '../../protocol/codec-json.js';
import { encodeMsgpackServer } from '../../protocol/codec-msgpack.js';
import type { Payload } from '../../protocol/payload.js';
import type { Costs } from './costs.js';
import type { PlanInputs } from './inputs.js';
import { reachOf, topicGroups, type TopicGroup } from './spread.js';

/** How often a busy node lets messages go: `batchWindowMs` of `node/assemble.ts`. */
export const batchWindowMs = 5;
/** Ethernet, IPv4 and TCP with time stamps: what a write to a socket costs the network beyond its bytes. */
export const packetBytes = 14 + 20 + 32;

/** `TOPICAST_CONNECT_RATE` when nobody sets it. */
const shippedConnectRate = 5000;
/** A storm that is over sooner is not planned for. */
const shortStormSec = 10;

/** What the inputs ask for, before it is shared out over nodes. Rates are a second, at the peak. */
export interface Demand {
  readonly sessions: number;
  readonly groups: readonly TopicGroup[];
  readonly messages: number;
  /** Of them, taken by nodes. */
  readonly published: number;
  /** What brings them: HTTP requests, or frames. */
  readonly publishRequests: number;
  /** Messages times the sessions that get each. */
  readonly deliveries: number;
  /** Sessions that a message reaches, on average. */
  readonly fanout: number;
  /** Messages that are written to a socket at once, on average. */
  readonly batch: number;
  readonly deliveryUs: number;
  readonly publishUs: number;
  readonly pushes: number;
  readonly connects: number;
  /** Connections a second that the nodes let in, all together. */
  readonly connectRate: number;
  /** The most that come in: the admission rate, or a tenth of all sessions if those are fewer. */
  readonly stormConnects: number;
  /** A message as a client gets it, WebSocket head included. */
  readonly frameBytes: number;
  readonly pushFrameBytes: number;
}

export function demandOf(inputs: PlanInputs, costs: Costs): Demand {
  const groups = topicGroups(inputs);
  const sessions = inputs.users * inputs.sessionsPerUser;
  const reach = reachOf(groups);
  const connects = sessions / (inputs.sessionMinutes * 60);
  const connectRate =
    inputs.connectRate > 0 ? inputs.connectRate : Math.max(shippedConnectRate, 2 * connects);
  const published = inputs.publishVia === 'nats' ? 0 : inputs.messagesPerS;
  const isHttp = inputs.publishVia === 'http';
  const batch = batchOf(inputs.messagesPerS * reach);
  return {
    sessions,
    groups,
    messages: inputs.messagesPerS,
    published,
    publishRequests: isHttp ? published / inputs.publishBatch : published,
    deliveries: inputs.messagesPerS * reach * sessions,
    fanout: reach * sessions,
    batch,
    deliveryUs: deliveryUsOf(batch, costs),
    publishUs: isHttp ? publishUsOf(inputs.publishBatch, costs) : costs.publishFrameUs,
    pushes: (inputs.pushesPerDay / 86_400) * inputs.pushPeak,
    connects,
    connectRate,
    stormConnects: Math.max(connects, Math.min(connectRate, sessions / shortStormSec)),
    frameBytes: framed(headBytes(inputs) + inputs.bytes),
    pushFrameBytes: framed(headBytes({ ...inputs, topicBytes: 0 }) + inputs.pushBytes),
  };
}

/**
 * Messages that have gathered for a session when the node lets them go, of those that let any go: the mean of a Poisson count that is not 0.
 * @param perSec messages a second that one session gets
 */
export function batchOf(perSec: number): number {
  const expected = (perSec * batchWindowMs) / 1000;
  return expected < 1e-9 ? 1 : expected / -Math.expm1(-expected);
}

/**
 * How often a node wakes up for what comes so often: each time on its own while that is seldom, and once a window, for all that has gathered,
 * when it is often. What comes at random rather than evenly shares a turn now and then before that, up to a third less in all.
 */
export function wakesOf(perSec: number): number {
  return Math.min(perSec, 1000 / batchWindowMs);
}

/** @param batch messages in one write */
export function deliveryUsOf(
  batch: number,
  costs: Pick<Costs, 'deliveryWriteUs' | 'deliveryMessageUs'>,
): number {
  return costs.deliveryMessageUs + costs.deliveryWriteUs / batch;
}

/** A request costs the same however many messages it brings. */
export function publishUsOf(batch: number, costs: Pick<Costs, 'publishUs' | 'publishBatchedUs'>): number {
  return costs.publishBatchedUs + Math.max(0, costs.publishUs - costs.publishBatchedUs) / batch;
}

/** Of a `msg` frame without its payload. */
function headBytes({ codec, topicBytes }: Pick<PlanInputs, 'codec' | 'topicBytes'>): number {
  const data: Payload =
    codec === 'json' ? { format: 'json', text: '0' } : { format: 'msgpack', bytes: new Uint8Array(1) };
  const frame = { type: 'msg', topic: 'x'.repeat(topicBytes), offset: 1_000_000, data } as const;
  const encoded = codec === 'json' ? encodeJsonServer(frame) : encodeMsgpackServer(frame);
  return encoded.length - 1;
}

/** With the head of a WebSocket frame (RFC 6455, 5.2). */
function framed(bytes: number): number {
  return bytes + (bytes < 126 ? 2 : bytes < 65_536 ? 4 : 10);
}
