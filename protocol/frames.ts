import type { ErrorCode } from './codes.js';
import type { Payload } from './payload.js';

/**
 * The frames of version 1. In JSON a frame is an object with `type`; in MessagePack an array: the number of
 * the type, then the fields in the order of `frameFields`, trailing absent ones left out, nil for those in the middle.
 * Unknown fields are ignored in both directions.
 */

/** A subscription request: a topic or pattern, where to resume, or how many stored messages to start with. */
export interface TopicRequest {
  readonly topic: string;
  readonly epoch?: string;
  readonly offset?: number;
  /** Snapshot: the last n stored messages first. Ignored when a position is given. */
  readonly last?: number;
}

export type ClientFrame =
  | { readonly type: 'subscribe'; readonly req?: number; readonly topics: readonly TopicRequest[] }
  | { readonly type: 'unsubscribe'; readonly req?: number; readonly topics: readonly string[] }
  | {
      readonly type: 'publish';
      readonly req?: number;
      readonly topic: string;
      readonly data: Payload;
      /** De-duplicates, per publisher and topic, for two minutes. */
      readonly id?: string;
    }
  | { readonly type: 'ack'; readonly ids: readonly number[] }
  | { readonly type: 'ping' }
  | { readonly type: 'auth'; readonly req?: number; readonly token: string };

/** What became of one requested topic. */
export type SubscribedTopic =
  | {
      readonly topic: string;
      readonly epoch: string;
      /** What follows is after this. Always safe to store. */
      readonly offset: number;
      readonly recovered: boolean;
    }
  | { readonly topic: string }
  | { readonly topic: string; readonly error: ErrorCode };

export type ServerFrame =
  | {
      readonly type: 'welcome';
      readonly session: string;
      readonly node: string;
      readonly pingSec: number;
      readonly idleSec: number;
      readonly expiresInSec?: number;
      readonly degraded?: readonly string[];
    }
  | { readonly type: 'subscribed'; readonly req?: number; readonly topics: readonly SubscribedTopic[] }
  | {
      readonly type: 'unsubscribed';
      readonly req?: number;
      readonly topics: readonly string[];
      readonly reason?: string;
    }
  | {
      readonly type: 'msg';
      readonly topic: string;
      readonly data: Payload;
      /** On durable topics only. */
      readonly offset?: number;
      /** Set when the message came for a pattern: the position to advance. */
      readonly pattern?: string;
    }
  | {
      readonly type: 'direct';
      /** Present when the message is queued and must be acknowledged. */
      readonly id?: number;
      readonly data: Payload;
    }
  | {
      readonly type: 'published';
      readonly req?: number;
      readonly topic: string;
      readonly offset?: number;
      readonly epoch?: string;
      readonly duplicate?: boolean;
    }
  | {
      readonly type: 'error';
      readonly req?: number;
      readonly code: ErrorCode;
      readonly message: string;
      readonly topic?: string;
    }
  | { readonly type: 'gap'; readonly topic: string; readonly from: number; readonly to: number }
  | { readonly type: 'resync'; readonly topics: readonly string[] }
  | { readonly type: 'expiring'; readonly inSec: number }
  | {
      readonly type: 'pong';
      /** Namespace → `epoch:offset`: everything of the connection's topics up to it has been sent. */
      readonly floors?: Readonly<Record<string, string>>;
    }
  | { readonly type: 'bye'; readonly code: number; readonly reason: string; readonly retryMs?: number };

export type ClientFrameType = ClientFrame['type'];
export type ServerFrameType = ServerFrame['type'];

/** The MessagePack number of each type. */
export const clientFrameNumbers = {
  subscribe: 1,
  unsubscribe: 2,
  publish: 3,
  ack: 4,
  ping: 5,
  auth: 6,
} as const satisfies Record<ClientFrameType, number>;

export const serverFrameNumbers = {
  welcome: 16,
  subscribed: 17,
  unsubscribed: 18,
  msg: 19,
  direct: 20,
  published: 21,
  error: 22,
  gap: 23,
  resync: 24,
  expiring: 25,
  pong: 26,
  bye: 27,
} as const satisfies Record<ServerFrameType, number>;

/** The order of the fields of a MessagePack frame, after its number. */
export const frameFields = {
  subscribe: ['req', 'topics'],
  unsubscribe: ['req', 'topics'],
  publish: ['req', 'topic', 'data', 'id'],
  ack: ['ids'],
  ping: [],
  auth: ['req', 'token'],
  welcome: ['session', 'node', 'pingSec', 'idleSec', 'expiresInSec', 'degraded'],
  subscribed: ['req', 'topics'],
  unsubscribed: ['req', 'topics', 'reason'],
  msg: ['topic', 'data', 'offset', 'pattern'],
  direct: ['id', 'data'],
  published: ['req', 'topic', 'offset', 'epoch', 'duplicate'],
  error: ['req', 'code', 'message', 'topic'],
  gap: ['topic', 'from', 'to'],
  resync: ['topics'],
  expiring: ['inSec'],
  pong: ['floors'],
  bye: ['code', 'reason', 'retryMs'],
} as const satisfies Record<ClientFrameType | ServerFrameType, readonly string[]>;
