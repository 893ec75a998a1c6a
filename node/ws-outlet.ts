import type { Codec, Encoded } from '../protocol/codec.js';
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
  /** Waits for the next frame, or the end of the turn. */
  #waiting: Encoded | undefined;
  #closed = false;

  constructor(ws: WebSocket<unknown>, codec: Codec) {
    this.#ws = ws;
    this.#codec = codec;
  }

  send(frame: ServerFrame): SendStatus {
    if (this.#closed) return 'sent';
    return this.#write(this.#codec.encodeServer(frame));
  }

  sendWithNext(frame: ServerFrame): void {
    if (this.#closed) return;
    this.#flush();
    this.#waiting = this.#codec.encodeServer(frame);
    setImmediate(flush, this);
  }

  /** @internal */
  flush(): void {
    if (!this.#closed) this.#flush();
  }

  deliver(message: ChannelMessage): SendStatus {
    if (this.#closed) return 'sent';
    return this.#write(this.#codec.binary ? message.msgpack : message.json);
  }

  join(channel: OutletChannel): void {
    if (this.#closed) return;
    this.#flush();
    this.#ws.subscribe(this.#topicOf(channel));
    this.#count(channel, 1);
  }

  leave(channel: OutletChannel): void {
    // µWS forgets the topics of a closed socket by itself.
    if (!this.#closed) this.#ws.unsubscribe(this.#topicOf(channel));
    this.#count(channel, -1);
  }

  ping(): void {
    if (this.#closed) return;
    this.#flush();
    this.#ws.ping();
  }

  buffered(): number {
    return this.#closed ? 0 : this.#ws.getBufferedAmount();
  }

  close(code: number, reason: string): void {
    // µWS calls the close handler before this returns.
    if (this.#closed) return;
    this.#flush();
    this.#ws.end(code, reason);
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  onClosed(): void {
    this.#closed = true;
  }

  #flush(): void {
    const waiting = this.#waiting;
    if (waiting === undefined) return;
    this.#waiting = undefined;
    this.#ws.send(waiting, this.#codec.binary);
  }

  #write(bytes: Encoded): SendStatus {
    const { binary } = this.#codec;
    if (this.#waiting === undefined) return toStatus(this.#ws.send(bytes, binary));
    let answer = 0;
    this.#ws.cork(() => {
      this.#flush();
      answer = this.#ws.send(bytes, binary);
    });
    return toStatus(answer);
  }

  #topicOf(channel: OutletChannel): string {
    return this.#codec.binary ? channel.msgpackTopic : channel.jsonTopic;
  }

  #count(channel: OutletChannel, by: number): void {
    if (this.#codec.binary) channel.msgpackCount += by;
    else channel.jsonCount += by;
  }
}

/** A function of its own, so that waiting takes no closure. */
function flush(outlet: WsOutlet): void {
  outlet.flush();
}

function toStatus(answer: number): SendStatus {
  return statuses[answer] ?? 'dropped';
}
