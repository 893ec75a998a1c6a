import { decodeJsonClient, encodeJsonServer } from '../../protocol/codec-json.js';
import type { ClientFrame, ClientFrameType, ServerFrame } from '../../protocol/frames.js';
import type { SocketClose, SocketLike, SocketMessage } from '../../client/socket.js';

/** A socket whose other end is the test. It speaks JSON. */
export class FakeSocket implements SocketLike {
  binaryType = '';
  onopen: ((event: never) => void) | null = null;
  onmessage: ((event: SocketMessage) => void) | null = null;
  onclose: ((event: SocketClose) => void) | null = null;
  onerror: ((event: never) => void) | null = null;
  readonly url: string;
  readonly protocols: readonly string[];
  /** Everything the client has sent, in order. */
  readonly sent: ClientFrame[] = [];
  closed = false;

  constructor(url: string, protocols: readonly string[]) {
    this.url = url;
    this.protocols = protocols;
  }

  /** The `topics` of the handshake. */
  get topics(): string[] {
    const list = new URL(this.url).searchParams.get('topics');
    return list === null ? [] : list.split(',');
  }

  send(data: string | Uint8Array): void {
    const frame = decodeJsonClient(String(data));
    if (!frame.ok) throw new Error(frame.message);
    this.sent.push(frame.value);
  }

  close(): void {
    this.closed = true;
  }

  receive(...frames: ServerFrame[]): void {
    for (const frame of frames) this.onmessage?.({ data: encodeJsonServer(frame) });
  }

  welcome(more: { pingSec?: number; degraded?: string[] } = {}): void {
    this.receive({ type: 'welcome', session: 'n.1', node: 'n', pingSec: 30, idleSec: 180, ...more });
  }

  message(topic: string, offset: number, pattern?: string): void {
    const data = { format: 'json', text: String(offset) } as const;
    this.receive({ type: 'msg', topic, offset, data, ...(pattern !== undefined && { pattern }) });
  }

  /** The line is gone. */
  cut(code = 1006, reason = ''): void {
    this.onclose?.({ code, reason });
  }

  ofType<T extends ClientFrameType>(type: T): (ClientFrame & { readonly type: T })[] {
    return this.sent.filter((frame): frame is ClientFrame & { readonly type: T } => frame.type === type);
  }
}
