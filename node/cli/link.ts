import { WebSocket } from 'ws';
import { parseRetryAfter } from '../../client/backoff.js';
import { jsonCodec } from '../../protocol/codec-json.js';
import type { ClientFrame, ServerFrame } from '../../protocol/frames.js';
import { describe } from './errors.js';

/** How one connection ended. */
export interface LinkEnd {
  /** For people, on one line. */
  readonly reason: string;
  /** Milliseconds since `welcome`; undefined when none came. */
  readonly welcomedMs?: number;
  /** WebSocket close code, or that of a `bye`. */
  readonly code?: number;
  /** HTTP status that was answered instead of the upgrade. */
  readonly status?: number;
  /** How long the server wants to be left alone (`bye`, `Retry-After`). */
  readonly retryMs?: number;
}

export interface LinkHandlers {
  frame(frame: ServerFrame): void;
  /** Something arrived that is not a frame of version 1, and was ignored. */
  fault(text: string): void;
}

const handshakeMsMax = 10_000;
/** A node welcomes within two seconds even when it cannot register the session; the rest is for the line. */
const welcomeMsMax = 15_000;
const closeMsMax = 2_000;

/** One WebSocket connection: frames both ways, heartbeat, and one end. */
export class Link {
  /** Settles once, whatever happens; never rejects. */
  readonly ended: Promise<LinkEnd>;
  private readonly socket: WebSocket;
  private readonly handlers: LinkHandlers;
  private welcomedAt: number | undefined;
  private reason: string | undefined;
  private status: number | undefined;
  private retryMs: number | undefined;
  private byeCode: number | undefined;
  private welcomeTimer: NodeJS.Timeout | undefined;
  private pingTimer: NodeJS.Timeout | undefined;
  private closeTimer: NodeJS.Timeout | undefined;
  private awaitingAnswer = false;

  constructor(address: URL, token: string | undefined, handlers: LinkHandlers) {
    this.handlers = handlers;
    this.socket = new WebSocket(address, jsonCodec.subprotocol, {
      handshakeTimeout: handshakeMsMax,
      perMessageDeflate: false,
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    });
    this.ended = new Promise((resolve) => {
      this.socket.on('close', (code, reason) => resolve(this.end(code, reason.toString())));
    });
    this.socket.on('error', (error) => (this.reason ??= describe(error)));
    this.socket.on('unexpected-response', (_request, response) => {
      this.status = response.statusCode ?? 0;
      this.retryMs = parseRetryAfter(response.headers['retry-after']);
      this.cut(`refused with ${this.status}`);
    });
    this.socket.on('open', () => {
      this.welcomeTimer = setTimeout(() => this.cut('connected, but no welcome came'), welcomeMsMax);
    });
    this.socket.on('message', (data) => {
      if (Buffer.isBuffer(data)) this.receive(data);
    });
  }

  /** Whether frames can be sent now. */
  get open(): boolean {
    return this.welcomedAt !== undefined && this.socket.readyState === WebSocket.OPEN;
  }

  send(frame: ClientFrame): void {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(jsonCodec.encodeClient(frame));
  }

  /** Stops reading, so that the server holds what its reader cannot take yet. */
  pause(): void {
    this.socket.pause();
  }

  resume(): void {
    this.awaitingAnswer = false;
    this.socket.resume();
  }

  /** Closes with a handshake, or without one when the other side does not answer. */
  close(): void {
    this.socket.resume();
    this.socket.close(1000);
    this.closeTimer ??= setTimeout(() => this.socket.terminate(), closeMsMax);
  }

  private cut(reason: string): void {
    this.reason ??= reason;
    this.socket.terminate();
  }

  private receive(data: Buffer): void {
    this.awaitingAnswer = false;
    const decoded = jsonCodec.decodeServer(data);
    if (!decoded.ok) {
      this.handlers.fault(decoded.message);
      return;
    }
    const frame = decoded.value;
    if (frame.type === 'welcome') this.welcomed(frame.pingSec);
    if (frame.type === 'bye') {
      this.reason ??= frame.reason;
      this.byeCode = frame.code;
      this.retryMs = frame.retryMs;
    }
    this.handlers.frame(frame);
  }

  private welcomed(pingSec: number): void {
    clearTimeout(this.welcomeTimer);
    clearInterval(this.pingTimer);
    this.welcomedAt = performance.now();
    this.pingTimer = setInterval(() => this.ping(), pingSec * 1000);
  }

  private ping(): void {
    if (this.awaitingAnswer) {
      this.cut('the server does not answer');
      return;
    }
    // An answer cannot be seen while reading is paused; the ping still tells the server that somebody is here.
    this.awaitingAnswer = !this.socket.isPaused;
    this.send({ type: 'ping' });
  }

  private end(closeCode: number, closeReason: string): LinkEnd {
    clearTimeout(this.welcomeTimer);
    clearInterval(this.pingTimer);
    clearTimeout(this.closeTimer);
    const code = this.byeCode ?? closeCode;
    const reason = this.reason ?? (closeReason === '' ? 'the connection was cut' : closeReason);
    return {
      reason,
      code,
      ...(this.welcomedAt === undefined ? {} : { welcomedMs: performance.now() - this.welcomedAt }),
      ...(this.status === undefined ? {} : { status: this.status }),
      ...(this.retryMs === undefined ? {} : { retryMs: this.retryMs }),
    };
  }
}
