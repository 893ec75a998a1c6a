import type { ErrorCode } from '../protocol/codes.js';
import type { Backoff } from './backoff.js';
import type { WireCodec } from './codec.js';
import type { TopicastError } from './errors.js';
import type { FetchLike } from './handshake.js';
import type { StateChange } from './link.js';
import type { SocketConstructor, SocketFactory } from './socket.js';
import type { CursorStorage } from './storage.js';
import type { TokenOptions } from './token.js';

export interface ClientOptions extends TokenOptions {
  /** Topics and patterns to listen to from the start; their messages come as `message` events. */
  readonly topics?: readonly string[];
  /** `json` unless told. `msgpack` is loaded when asked for; where nothing can be loaded, give the codec of `topicast/client/msgpack` itself. */
  readonly codec?: 'json' | 'msgpack' | WireCodec;
  /** The environment's own unless told: a constructor (that of `ws`) or a factory (`fromWxSocket`). */
  readonly webSocket?: SocketConstructor | SocketFactory;
  /** Keeps positions beyond this client, so that the next one resumes. Nothing is kept unless told. */
  readonly storage?: CursorStorage;
  /** The environment's own unless told; only used to learn why the node refused a connection. */
  readonly fetch?: FetchLike;
  /** A name shown to operators. */
  readonly device?: string;
  /** Who to be on a node that checks no tokens. */
  readonly user?: string;
  /** Publishes that may wait for an answer or a connection; 1,000 unless told. */
  readonly publishQueueMax?: number;
  /** Publishes sent a second, in the long run; 80 unless told, since a node takes 100 frames. */
  readonly publishesPerSec?: number;
  /** The largest frame that the node takes, in bytes; 65,536 unless told (its `TOPICAST_LIMIT_FRAME_BYTES`). */
  readonly frameBytesMax?: number;
  readonly backoff?: Partial<Backoff>;
  /** For tests: 0 ≤ x < 1. */
  readonly random?: () => number;
}

export interface Message<T = unknown> {
  /** The concrete topic, also when a pattern was subscribed. */
  readonly topic: string;
  readonly data: T;
  /** On durable topics: increases, with gaps that mean nothing. */
  readonly offset?: number;
}

export type MessageHandler<T = unknown> = (message: Message<T>) => unknown;

export interface DirectMessage<T = unknown> {
  /** Absent when the message is kept nowhere and needs no acknowledgement. */
  readonly id?: number;
  readonly data: T;
}

/** The message is acknowledged when what it returns has settled well, and comes again with a later connection when it has not. */
export type DirectHandler<T = unknown> = (message: DirectMessage<T>) => unknown;

export interface SubscribeOptions {
  /** Begins with the last n stored messages, 1,000 at most. Of no effect on live topics, and when a stored position is resumed. */
  readonly last?: number;
}

export interface PublishOptions {
  /** 1 to 128 characters; publishes of this user to this topic with one id are stored once within two minutes. Minted unless told. */
  readonly id?: string;
}

/** Where a message was stored. Empty for a live topic: it was handed over. */
export interface Published {
  readonly offset?: number;
  readonly epoch?: string;
  readonly duplicate?: boolean;
}

export interface ClientEvents {
  /** A message of `topics`, or of the topics that the token or a back end subscribed. */
  message: Message;
  state: StateChange;
  /** A topic or pattern is listened to from now on, after each connect again; `offset` on durable ones: what follows is after it. */
  subscribed: { readonly topic: string; readonly epoch?: string; readonly offset?: number };
  /** These offsets of a topic or pattern may have existed and are gone for good: load the state anew. */
  gap: { readonly topic: string; readonly from: number; readonly to: number };
  /** Messages since the last one may be missing and will not come: load the state anew. */
  unrecovered: { readonly topic: string };
  /** A topic is not (or no longer) subscribed. `final`: not asked for again on this connection. */
  refused: {
    readonly topic: string;
    readonly code: ErrorCode;
    readonly reason?: string;
    readonly final: boolean;
  };
  /** The token ends soon. With `getToken`, a fresh one is on its way. */
  expiring: { readonly inSec: number };
  /** Whatever has no promise of its own. Without a listener it is written to the console. */
  error: TopicastError;
}

export type Unsubscribe = () => void;
