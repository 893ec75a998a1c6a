/** The client SDK: `connect` and what goes with it. Runs in browsers, Node and mini-programs; imports the protocol and nothing else. */
import { Client } from './client.js';
import type { ClientOptions } from './types.js';

export type { Backoff } from './backoff.js';
export type { Client } from './client.js';
export type { WireCodec } from './codec.js';
export { TopicastError, type ClientErrorCode } from './errors.js';
export type { FetchLike } from './handshake.js';
export type { State, StateChange } from './link.js';
export type { SocketConstructor, SocketFactory, SocketLike } from './socket.js';
export { memoryStorage, type CursorStorage } from './storage.js';
export type {
  ClientEvents,
  ClientOptions,
  DirectHandler,
  DirectMessage,
  Message,
  MessageHandler,
  Published,
  PublishOptions,
  SubscribeOptions,
  Unsubscribe,
} from './types.js';

/**
 * Connects to a node, and keeps connected until `close`. Returns at once: subscribe and publish right away, what has to wait is queued.
 * @param url of the node, `https://HOST[:PORT][/BASE]` (`http:`, `ws:` and `wss:` too); in a page `/` is where it came from
 * @throws TypeError for an address or a topic that is none
 */
export function connect(url: string, options: ClientOptions = {}): Client {
  return new Client(url, options);
}
