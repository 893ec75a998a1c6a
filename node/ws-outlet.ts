import type { Codec } from '../protocol/codec.js';
import type { ServerFrame } from '../protocol/frames.js';
import type { ChannelMessage } from './message.js';
import type { Outlet, OutletChannel, SendStatus } from './outlet.js';
import type { WebSocket } from './uws.js';

/** What `send` of µWS answers: 1 sent, 0 waits in memory, 2 not taken because too much waits already. */
const statuses: readonly SendStatus[] = ['buffered', 'sent', 'dropped'];

/** A WebSocket. After its close every call is without effect, because µWS throws on a socket that is gone. */
export class WsOutlet implements Outlet {
  readonly #ws: WebSocket<unknown>;
  readonly #codec: Codec;
  #closed = false;

  constructor(ws: WebSocket<unknown>, codec: Codec) {
    this.#ws = ws;
    this.#codec = codec;
  }

  send(frame: ServerFrame): SendStatus {
    if (this.#closed) return 'sent';
    return toStatus(this.#ws.send(this.#codec.encodeServer(frame), this.#codec.binary));
  }

  deliver(message: ChannelMessage): SendStatus {
    if (this.#closed) return 'sent';
    return toStatus(this.#ws.send(this.#codec.binary ? message.msgpack : message.json, this.#codec.binary));
  }

  join(channel: OutletChannel): void {
    if (this.#closed) return;
    this.#ws.subscribe(this.#topicOf(channel));
    this.#count(channel, 1);
  }

  leave(channel: OutletChannel): void {
    // µWS forgets the topics of a closed socket by itself.
    if (!this.#closed) this.#ws.unsubscribe(this.#topicOf(channel));
    this.#count(channel, -1);
  }

  ping(): void {
    if (!this.#closed) this.#ws.ping();
  }

  buffered(): number {
    return this.#closed ? 0 : this.#ws.getBufferedAmount();
  }

  close(code: number, reason: string): void {
    // µWS calls the close handler before this returns.
    if (!this.#closed) this.#ws.end(code, reason);
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  onClosed(): void {
    this.#closed = true;
  }

  #topicOf(channel: OutletChannel): string {
    return this.#codec.binary ? channel.msgpackTopic : channel.jsonTopic;
  }

  #count(channel: OutletChannel, by: number): void {
    if (this.#codec.binary) channel.msgpackCount += by;
    else channel.jsonCount += by;
  }
}

function toStatus(answer: number): SendStatus {
  return statuses[answer] ?? 'dropped';
}
