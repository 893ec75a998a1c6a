import { closeCodes } from '../protocol/codes.js';
import type { ClientFrame, ServerFrame } from '../protocol/frames.js';
import { fullJitter, type Backoff } from './backoff.js';
import type { WireCodec } from './codec.js';
import { Connection } from './connection.js';
import { textOf, TopicastError } from './errors.js';
import {
  probe,
  socketAddress,
  verdictOf,
  type End,
  type FetchLike,
  type ProbeAnswer,
  type Verdict,
} from './handshake.js';
import { openSocket, type SocketConstructor, type SocketFactory } from './socket.js';
import type { Tokens } from './token.js';

export type State = 'connecting' | 'open' | 'waiting' | 'closed';

export interface StateChange {
  readonly state: State;
  /** Why it waits or was closed. */
  readonly reason?: string;
  /** `waiting`: when it tries again, in ms from now, unless the page wakes it before. */
  readonly retryMs?: number;
  /** `open`: the session's id, and what the node cannot do at this moment (`topics`, `direct`). */
  readonly session?: string;
  readonly degraded?: readonly string[];
  /** `closed`: why, unless the application closed it. */
  readonly error?: TopicastError;
}

export interface LinkOptions {
  /** With `http:`, without topics; see `connectAddress`. */
  readonly address: string;
  readonly tokens: Tokens;
  readonly webSocket: SocketConstructor | SocketFactory | undefined;
  readonly fetch: FetchLike | undefined;
  readonly backoff: Backoff;
  /** 0 ≤ x < 1. */
  readonly random: () => number;
}

export interface LinkHandlers {
  /** Before the first connection, with the token known. What is not ready yet is waited for. */
  prepare(): Promise<WireCodec>;
  /** What the handshake asks for, as in its query. */
  topics(token: string | undefined): string;
  /** Frames may be sent. */
  opened(): void;
  frame(frame: ServerFrame, data: unknown): void;
  /** The connection that was open, or was to be, is gone. */
  lost(): void;
  changed(change: StateChange): void;
  error(error: TopicastError): void;
}

/** A connection that lived this long was a good one: the next failure starts the backoff anew. */
const stableMs = 5_000;

/** Keeps a connection to the node for as long as the application and the server want one. */
export class Link {
  readonly #options: LinkOptions;
  readonly #handlers: LinkHandlers;
  #connection: Connection | undefined;
  #state: State = 'connecting';
  #everWelcomed = false;
  /** Waits since the last good connection, or since the page came back. */
  #attempt = 0;
  /** A token that was fetched after a 401 is refused for good. */
  #tokenRenewed = false;
  /** The wait for the next try, and until when (ms since the Unix epoch) the server wants it to last. */
  #wait: { readonly end: () => void; readonly notBefore: number } | undefined;

  constructor(options: LinkOptions, handlers: LinkHandlers) {
    this.#options = options;
    this.#handlers = handlers;
  }

  get state(): State {
    return this.#state;
  }

  /** Connects again and again until closed. Never rejects. */
  async run(): Promise<void> {
    let codec: WireCodec | undefined;
    while (!this.#isClosed()) {
      if (this.#state !== 'connecting') this.#change({ state: 'connecting' });
      try {
        const token = await this.#options.tokens.get();
        codec ??= await this.#handlers.prepare();
        if (this.#isClosed()) return;
        const end = await this.#connect(codec, token);
        this.#handlers.lost();
        if ((end.welcomedMs ?? 0) >= stableMs) this.#attempt = 0;
        const verdict = await this.#judge(end, token);
        if (this.#isClosed()) return;
        if (verdict.then === 'never') return this.close(new TopicastError(verdict.code, verdict.reason));
        if (verdict.then === 'again') await this.#pause(verdict.hintMs, end.reason);
      } catch (thrown) {
        if (this.#isClosed()) return;
        const error = errorOf(thrown);
        if (error.code === 'environment') return this.close(error);
        this.#handlers.error(error);
        await this.#pause(0, error.message);
      }
    }
  }

  /** @returns false when nothing is open to send it on */
  send(frame: ClientFrame): boolean {
    return this.#connection?.send(frame) ?? false;
  }

  /** The page came back: connects now if it waits (but for a wait that the server asked for), and looks whether an open line is dead. */
  wake(): void {
    this.#connection?.check();
    if (this.#wait === undefined || Date.now() < this.#wait.notBefore) return;
    // A network is often announced a moment before it carries anything: the next try must not be half a minute away.
    this.#attempt = 0;
    this.#wait.end();
  }

  /** For good. */
  close(error?: TopicastError): void {
    if (this.#isClosed()) return;
    const reason = error?.message ?? 'closed by the application';
    this.#change({ state: 'closed', reason, ...(error !== undefined && { error }) });
    this.#connection?.close(reason);
    this.#wait?.end();
  }

  /** A method, because it changes while others are awaited. */
  #isClosed(): boolean {
    return this.#state === 'closed';
  }

  #connect(codec: WireCodec, token: string | undefined): Promise<End> {
    const { address, webSocket } = this.#options;
    const protocols = [codec.subprotocol];
    if (token !== undefined && token !== '') protocols.push(`bearer.${token}`);
    const url = socketAddress(address, this.#handlers.topics(token));
    let socket;
    try {
      socket = openSocket(webSocket, url, protocols);
    } catch (cause) {
      throw new TopicastError('environment', textOf(cause), { cause });
    }
    return new Promise((resolve) => {
      this.#connection = new Connection(socket, codec, {
        frame: (frame, data) => {
          if (this.#isClosed()) return;
          if (frame.type === 'welcome') this.#welcomed(frame.session, frame.degraded);
          else this.#handlers.frame(frame, data);
        },
        fault: (message) => this.#handlers.error(new TopicastError('invalid_frame', message)),
        end: (end) => {
          this.#connection = undefined;
          resolve(end);
        },
      });
    });
  }

  #welcomed(session: string, degraded: readonly string[] | undefined): void {
    this.#everWelcomed = true;
    this.#tokenRenewed = false;
    // What the application asks for when it hears of it comes after what it asked for before.
    this.#handlers.opened();
    this.#change({ state: 'open', session, ...(degraded !== undefined && { degraded }) });
  }

  async #judge(end: End, token: string | undefined): Promise<Verdict> {
    const { tokens } = this.#options;
    if (end.code === closeCodes.tokenExpired) tokens.expire();
    const probed = end.welcomedMs === undefined ? await this.#probe(end, token) : undefined;
    const verdict = verdictOf(end, probed, this.#everWelcomed);
    if (verdict.then !== 'new token') return verdict;
    if (!tokens.renewable || this.#tokenRenewed) {
      return { then: 'never', code: 'unauthorized', reason: 'the token was refused (401)' };
    }
    this.#tokenRenewed = true;
    tokens.expire();
    return verdict;
  }

  async #probe(end: End, token: string | undefined): Promise<ProbeAnswer | undefined> {
    const { address, fetch } = this.#options;
    // A close code of the server says it already.
    return fetch === undefined || end.code >= 4000 ? undefined : probe(fetch, address, token);
  }

  #pause(hintMs: number, reason: string): Promise<void> {
    const { backoff, random } = this.#options;
    const retryMs = Math.max(fullJitter(this.#attempt++, backoff, random), hintMs);
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#wait?.end(), retryMs);
      const end = (): void => {
        clearTimeout(timer);
        this.#wait = undefined;
        resolve();
      };
      this.#wait = { end, notBefore: Date.now() + hintMs };
      this.#change({ state: 'waiting', reason, retryMs });
    });
  }

  #change(change: StateChange): void {
    if (this.#isClosed()) return;
    this.#state = change.state;
    this.#handlers.changed(change);
  }
}

function errorOf(thrown: unknown): TopicastError {
  if (thrown instanceof TopicastError) return thrown;
  return new TopicastError('internal', textOf(thrown), { cause: thrown });
}
