/**
 * The part of a WebSocket that the client uses. The browser's, Node's `WebSocket`, and that of `ws` have it as they are;
 * `topicast/client/wx` adapts mini-program sockets.
 */
export interface SocketLike {
  binaryType: string;
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
  send(data: string | Uint8Array): void;
  close(code?: number, reason?: string): void;
}

export type SocketConstructor = new (url: string, protocols: string[]) => SocketLike;
export type SocketFactory = (url: string, protocols: string[]) => SocketLike;

/** What a handler gets in `onmessage`. `binaryType` is `arraybuffer`. */
export interface SocketMessage {
  readonly data: unknown;
}

/** What a handler gets in `onclose`. */
export interface SocketClose {
  readonly code: number;
  readonly reason: string;
}

/** Opens a socket with a constructor or a factory; without either, with the environment's own `WebSocket`. @throws Error when there is none */
export function openSocket(
  given: SocketConstructor | SocketFactory | undefined,
  url: string,
  protocols: string[],
): SocketLike {
  const open = given ?? (globalThis as { WebSocket?: SocketConstructor }).WebSocket;
  if (open === undefined) {
    throw new Error('this environment has no WebSocket: pass one as `webSocket`, for example that of `ws`');
  }
  // Arrow functions have no prototype and cannot be constructed; anything else that returns an object can.
  return isConstructor(open) ? new open(url, protocols) : open(url, protocols);
}

function isConstructor(open: SocketConstructor | SocketFactory): open is SocketConstructor {
  return (open as { prototype?: unknown }).prototype !== undefined;
}
