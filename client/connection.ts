import type { ClientFrame, ServerFrame } from '../protocol/frames.js';
import type { WireCodec } from './codec.js';
import type { End } from './handshake.js';
import type { SocketClose, SocketLike, SocketMessage } from './socket.js';

export type FrameOf<T extends ServerFrame['type']> = Extract<ServerFrame, { type: T }>;

export interface ConnectionHandlers {
  /** A frame, `welcome` included. `data` is its payload as a plain value. */
  frame(frame: ServerFrame, data: unknown): void;
  /** Something came that is not a frame of version 1, and was ignored. */
  fault(message: string): void;
  /** Called once, whatever happens. */
  end(end: End): void;
}

/** From the first try to `welcome`. A node welcomes within two seconds even when it cannot register the session. */
const welcomeMsMax = 20_000;
/** How long a ping may stay without any sign of life before the line counts as cut. */
const answerMsMax = 10_000;
/** The same for a page that has just come back: people are waiting. */
const wakeAnswerMsMax = 4_000;
/** A timer that fires this late was held up: what came meanwhile has not been handed out yet, so it waits once more. */
const lateMs = 1_000;

/** One WebSocket connection: frames both ways, heartbeat, and one end. */
export class Connection {
  readonly #socket: SocketLike;
  readonly #codec: WireCodec;
  readonly #handlers: ConnectionHandlers;
  #state: 'opening' | 'open' | 'ended' = 'opening';
  #welcomedAt = 0;
  #pings: ReturnType<typeof setInterval> | undefined;
  #deadline: ReturnType<typeof setTimeout> | undefined;

  constructor(socket: SocketLike, codec: WireCodec, handlers: ConnectionHandlers) {
    this.#socket = socket;
    this.#codec = codec;
    this.#handlers = handlers;
    socket.binaryType = 'arraybuffer';
    socket.onmessage = ({ data }: SocketMessage) => this.#receive(data);
    // What an error event says is in no environment more than the close that follows it.
    socket.onerror = () => undefined;
    socket.onclose = ({ code, reason }: SocketClose) =>
      this.#end({ code, reason: reason === '' ? 'the connection was cut' : reason });
    this.#expect(welcomeMsMax, 'no welcome came');
  }

  get open(): boolean {
    return this.#state === 'open';
  }

  /** @returns false when the connection is not open */
  send(frame: ClientFrame): boolean {
    if (this.#state !== 'open') return false;
    this.#socket.send(this.#codec.encode(frame));
    return true;
  }

  /** Makes sure soon that the line is not dead, after a time in which nobody could tell. */
  check(): void {
    this.#ping(wakeAnswerMsMax);
  }

  /** Ends it from this side; `end` has been called when this returns. */
  close(reason: string): void {
    this.#end({ code: 1000, reason });
  }

  #receive(message: unknown): void {
    if (this.#state === 'ended') return;
    const received = this.#codec.decode(message);
    if (this.#state === 'open') this.#alive();
    if (!received.ok) {
      // A newer node may have types that this client has no use for.
      if (received.code !== 'unknown_type') this.#handlers.fault(received.message);
      return;
    }
    const { frame, data } = received.value;
    if (frame.type === 'welcome') this.#welcomed(frame.pingSec);
    this.#handlers.frame(frame, data);
    if (frame.type === 'bye') {
      const { code, reason, retryMs } = frame;
      this.#end({ code, reason, ...(retryMs !== undefined && { retryMs }) });
    }
  }

  #welcomed(pingSec: number): void {
    this.#alive();
    this.#state = 'open';
    this.#welcomedAt = Date.now();
    clearInterval(this.#pings);
    this.#pings = setInterval(() => this.#ping(answerMsMax), pingSec * 1000);
  }

  #ping(answerMs: number): void {
    if (this.send({ type: 'ping' })) this.#expect(answerMs, 'the server does not answer');
  }

  /** Anything that comes counts as the answer. */
  #alive(): void {
    clearTimeout(this.#deadline);
    this.#deadline = undefined;
  }

  #expect(withinMs: number, otherwise: string, isSecond = false): void {
    if (this.#deadline !== undefined) return;
    const due = Date.now() + withinMs;
    this.#deadline = setTimeout(() => {
      this.#deadline = undefined;
      if (!isSecond && Date.now() - due > lateMs) this.#expect(lateMs, otherwise, true);
      else this.#end({ code: 1006, reason: otherwise });
    }, withinMs);
  }

  /** Does not wait for the closing handshake: on a dead line it takes a minute. What still comes is ignored. */
  #end(end: End): void {
    if (this.#state === 'ended') return;
    const welcomed = this.#state === 'open';
    this.#state = 'ended';
    this.#alive();
    clearInterval(this.#pings);
    this.#socket.close(1000);
    this.#handlers.end(welcomed ? { ...end, welcomedMs: Date.now() - this.#welcomedAt } : end);
  }
}
