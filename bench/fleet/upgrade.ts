/** What the request of one upgrade is made of. */
export interface UpgradeRequest {
  readonly host: string;
  readonly port: number;
  /** Path and query. */
  readonly target: string;
  /** The subprotocol to offer. */
  readonly protocol?: string;
  readonly token?: string;
}

export function upgradeText({ host, port, protocol, target, token }: UpgradeRequest): string {
  return [
    `GET ${target} HTTP/1.1`,
    `Host: ${host}:${port}`,
    'Upgrade: websocket',
    'Connection: Upgrade',
    // The example of RFC 6455: nobody checks the answer here, and no proxy is between.
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Version: 13',
    ...(protocol === undefined ? [] : [`Sec-WebSocket-Protocol: ${protocol}`]),
    ...(token === undefined ? [] : [`Authorization: Bearer ${token}`]),
    '\r\n',
  ].join('\r\n');
}

/** `Retry-After` of the head of an answer, in seconds; 1 when there is none that is a number. */
export function retryAfterSec(head: string): number {
  const match = /^retry-after:\s*(\d+)\s*$/im.exec(head);
  return match === null ? 1 : Number(match[1]);
}

/** Of `topics=`, with room for the rest of the header block (16 KiB). */
const handshakeTopicCharsMax = 8_000;

/** How many of the requests, in order, the handshake has room for. The others need a `subscribe` frame. */
export function handshakeRoom(requests: readonly string[]): number {
  let chars = 0;
  let count = 0;
  for (const request of requests) {
    chars += request.length + 1;
    if (chars > handshakeTopicCharsMax) break;
    count++;
  }
  return count;
}
