import { encodeJsonServer } from '../protocol/codec-json.js';
import type { ServerFrame } from '../protocol/frames.js';
import { singleLine } from '../protocol/json-scan.js';
import type { ChannelMessage } from './message.js';
import type { Outlet, OutletChannel, SendStatus, StreamOutlet } from './outlet.js';
import { StreamPositions } from './sse-positions.js';
import type { HttpResponse } from './uws.js';

export interface SseOutletOptions {
  /** Bytes that may wait for a slow reader; with more the stream is ended. */
  readonly bufferBytesMax: number;
  /** The stream ended from this side, with a code of `closeCodes`; called once, inside the call that ended it. */
  readonly onClosed: (code: number) => void;
  /** Everything that waited has been taken. */
  readonly onDrained: () => void;
  /** The reader was so slow that the stream was ended. */
  readonly onOverflow: () => void;
}

/** A comment: it keeps proxies from cutting a quiet line, and browsers ignore it. */
const comment = ':\n\n';
const overflowCode = 4001;

/**
 * An event stream. µWS keeps what the kernel does not take, but tells neither how much nor when it is gone, so at most one write is left to it;
 * what comes meanwhile waits here, bounded. Beyond the bound the stream ends: the browser comes back by itself with the id of the last event
 * that it got, so nothing durable is lost (G7).
 */
export class SseOutlet implements Outlet, StreamOutlet {
  readonly #res: HttpResponse;
  readonly #options: SseOutletOptions;
  readonly #positions = new StreamPositions();
  readonly #waiting: string[] = [];
  #waitingBytes = 0;
  /** Bytes of the write that µWS has not got rid of; 0 when there is none. */
  #stuckBytes = 0;
  #closed = false;

  /** @param res with its headers written, to be touched by nobody else from now on */
  constructor(res: HttpResponse, options: SseOutletOptions) {
    this.#res = res;
    this.#options = options;
    res.onWritable(() => this.#onWritable());
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  send(frame: ServerFrame): SendStatus {
    const id = this.#positions.apply(frame) ? this.#idLine() : '';
    return this.#write(`${id}event: ${frame.type}\ndata: ${singleLine(encodeJsonServer(frame))}\n\n`);
  }

  sendWithNext(frame: ServerFrame): void {
    this.send(frame);
  }

  deliver(message: ChannelMessage): SendStatus {
    this.#positions.advance(message.topic, message.offset);
    const id = message.offset > 0 ? this.#idLine() : '';
    return this.#write(`${id}data: ${singleLine(message.json)}\n\n`);
  }

  join(channel: OutletChannel): void {
    if (!this.#closed) channel.addStream(this);
  }

  leave(channel: OutletChannel): void {
    channel.removeStream(this);
  }

  ping(): void {
    if (this.buffered() === 0) this.#write(comment);
  }

  buffered(): number {
    return this.#closed ? 0 : this.#stuckBytes + this.#waitingBytes;
  }

  close(code: number): void {
    if (this.#closed) return;
    const rest = this.#waiting.join('');
    this.#forget();
    this.#res.cork(() => {
      if (rest !== '') this.#res.write(rest);
      // Not with `closeConnection`: µWS would write that header into the body.
      this.#res.end();
    });
    this.#options.onClosed(code);
  }

  /** The client has left: the response is gone. */
  onAborted(): void {
    this.#forget();
  }

  /** How long a browser waits before it comes back; to be written first. */
  writeRetry(ms: number): void {
    this.#write(`retry: ${Math.round(ms)}\n\n`);
  }

  #idLine(): string {
    const { id } = this.#positions;
    return id === '' ? '' : `id: ${id}\n`;
  }

  #write(text: string): SendStatus {
    if (this.#closed) return 'sent';
    if (this.#stuckBytes === 0) return this.#push(text) ? 'sent' : 'buffered';
    const bytes = Buffer.byteLength(text);
    if (this.buffered() + bytes > this.#options.bufferBytesMax) {
      this.#overflow();
      return 'dropped';
    }
    this.#waiting.push(text);
    this.#waitingBytes += bytes;
    return 'buffered';
  }

  /** Gives a text to µWS. @returns whether the kernel took everything */
  #push(text: string): boolean {
    this.#stuckBytes = 0;
    this.#res.cork(() => {
      if (!this.#res.write(text)) this.#stuckBytes = Buffer.byteLength(text);
    });
    return this.#stuckBytes === 0;
  }

  /** µWS does not send what it keeps by itself while somebody listens here, so something is written each time. */
  #onWritable(): boolean {
    if (this.#closed) return true;
    const text = this.#waiting.length === 0 ? comment : this.#waiting.join('');
    this.#waiting.length = 0;
    this.#waitingBytes = 0;
    const taken = this.#push(text);
    if (taken) this.#options.onDrained();
    return taken;
  }

  #overflow(): void {
    this.#waiting.length = 0;
    this.#options.onOverflow();
    this.close(overflowCode);
  }

  #forget(): void {
    this.#closed = true;
    this.#waiting.length = 0;
    this.#waitingBytes = 0;
    this.#stuckBytes = 0;
  }
}
