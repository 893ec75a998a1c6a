import { grammarLimits } from '../protocol/limits.js';
import type { ClientFrame, ServerFrame } from '../protocol/frames.js';
import type { Result } from '../protocol/result.js';
import { parseFilter, parseTopic } from '../protocol/topic.js';
import { defaultBackoff } from './backoff.js';
import { json, type WireCodec } from './codec.js';
import type { FrameOf } from './connection.js';
import { Direct } from './direct.js';
import { Emitter } from './emitter.js';
import { textOf, TopicastError } from './errors.js';
import { baseOf, connectAddress, type FetchLike } from './handshake.js';
import { messageId } from './ids.js';
import { Link, type State, type StateChange } from './link.js';
import { Once } from './once.js';
import { Outbox } from './outbox.js';
import { watchPage } from './page.js';
import { CursorKeeper } from './storage.js';
import { Subscriptions } from './subscriptions.js';
import { Tokens } from './token.js';
import type {
  ClientEvents,
  ClientOptions,
  DirectHandler,
  Message,
  MessageHandler,
  Published,
  PublishOptions,
  SubscribeOptions,
  Unsubscribe,
} from './types.js';

const lastMax = 1_000;
/** What a frame has beside the payload: its type, request number, topic and id, and the names of those. */
const frameHeadBytes = 512;

/**
 * A client of one node, or of a cluster behind one address: subscribes, publishes, and comes back by itself whenever the connection ends.
 * Made by `connect`; lives until `close`, or until the server says not to come back.
 */
export class Client {
  readonly #options: ClientOptions;
  readonly #base: string;
  readonly #events = new Emitter<ClientEvents>();
  readonly #tokens: Tokens;
  readonly #subscriptions: Subscriptions;
  readonly #outbox: Outbox;
  readonly #direct: Direct;
  readonly #cursors: CursorKeeper;
  readonly #link: Link;
  readonly #once = new Once();
  readonly #unwatch: () => void;
  /** A string that is not a codec yet is loaded at the first connect. */
  #codec: WireCodec | undefined;
  #codecLoading: Promise<WireCodec> | undefined;
  #req = 0;
  /** The number of the newest `auth` frame. */
  #authReq: number | undefined;

  /** @throws TypeError for an address that is none, and for a topic that is none */
  constructor(url: string, options: ClientOptions) {
    const { codec, storage, topics = [], user, device } = options;
    this.#options = options;
    this.#base = baseOf(url);
    this.#codec = codec === undefined || codec === 'json' ? json : codec === 'msgpack' ? undefined : codec;
    this.#tokens = new Tokens(options);
    const send = (frame: ClientFrame): boolean => this.#link.send(frame);
    const nextReq = (): number => ++this.#req;
    const onError = (error: TopicastError): void => this.#report(error);
    this.#cursors = new CursorKeeper(storage, () => this.#subscriptions.stored(), onError);
    this.#subscriptions = new Subscriptions({
      send,
      nextReq,
      uncalledFor: this.#emitMessage,
      moved: () => this.#cursors.touch(),
      emit: (name, event) => {
        if (name === 'unrecovered') this.#once.forget();
        this.#emit(name, event);
      },
    });
    const { publishQueueMax: queueMax = 1_000, publishesPerSec: perSecMax = 80 } = options;
    this.#outbox = new Outbox({ queueMax, perSecMax }, { send, nextReq });
    this.#direct = new Direct({ send, onThrow: (thrown) => this.#onThrow(thrown) });
    this.#link = this.#createLink(connectAddress(this.#base, { user, device }));
    for (const topic of topics) this.#subscriptions.add(checkFilter(topic), this.#emitMessage);
    this.#unwatch = watchPage({ wake: () => this.wake(), hide: () => this.#cursors.save() });
    // Not before the caller had a chance to listen and to subscribe: then the handshake asks for all of it.
    void Promise.resolve().then(() => this.#link.run());
  }

  get state(): State {
    return this.#link.state;
  }

  /** @returns ends the listening */
  on<K extends keyof ClientEvents>(name: K, listener: (event: ClientEvents[K]) => void): Unsubscribe {
    return this.#events.on(name, listener);
  }

  /**
   * Calls `handler` for each message of a topic or pattern, once, in order per topic. May be called at any time. Several handlers
   * of one topic, or of overlapping ones, are called independently.
   * @throws TypeError for what is neither a topic nor a pattern, or a `last` that is no count
   */
  subscribe<T = unknown>(
    topic: string,
    handler: MessageHandler<T>,
    { last }: SubscribeOptions = {},
  ): Unsubscribe {
    if (last !== undefined && !(Number.isInteger(last) && last >= 0 && last <= lastMax)) {
      throw new TypeError(`last is a whole number from 0 to ${lastMax}`);
    }
    const call = handler as MessageHandler;
    return this.#subscriptions.add(checkFilter(topic), (message) => this.#call(call, message), last);
  }

  /**
   * Publishes, now or when there is a connection again, and stores at most once.
   * Rejects with TopicastError: `queue_full` when too many wait, `invalid_topic`, `payload_too_large`, what the server refused it for
   * (`forbidden`, `unavailable`, …), `closed`, or `outcome_unknown`.
   */
  async publish(topic: string, data: unknown, { id = messageId() }: PublishOptions = {}): Promise<Published> {
    if (this.state === 'closed') throw new TopicastError('closed', 'the client is closed', { topic });
    const parsed = parseTopic(topic);
    if (!parsed.ok) throw new TopicastError('invalid_topic', `${topic}: ${parsed.message}`, { topic });
    if (id.length < 1 || id.length > grammarLimits.messageIdCharsMax) {
      throw new TopicastError(
        'invalid_frame',
        `an id has 1 to ${grammarLimits.messageIdCharsMax} characters`,
      );
    }
    // JSON needs no waiting: what is published is what the data is now.
    const codec = this.#codec ?? (await this.#loadCodec());
    const payload = payloadOf(codec, topic, data);
    const bytesMax = (this.#options.frameBytesMax ?? 64 * 1024) - frameHeadBytes;
    const bytes = payload.format === 'json' ? utf8Bytes(payload.text) : payload.bytes.length;
    if (bytes > bytesMax) {
      const message = `${bytes} bytes of data do not fit in one frame: publish them over HTTP`;
      throw new TopicastError('payload_too_large', message, { topic });
    }
    return this.#outbox.publish(topic, payload, id);
  }

  /**
   * Handles messages to this user. Each is acknowledged when the promise that the handler returns has settled well, and comes
   * again with a later connection when it has not. What was handled before is not handed out again.
   */
  onDirect<T = unknown>(handler: DirectHandler<T>): Unsubscribe {
    return this.#direct.on(handler as DirectHandler);
  }

  /** Resolves when a connection is open. Rejects when the client is closed before. */
  whenOpen(): Promise<void> {
    return new Promise((resolve, reject) => {
      const look = ({ state, error }: StateChange): void => {
        if (state !== 'open' && state !== 'closed') return;
        off();
        if (state === 'open') resolve();
        else reject(error ?? new TopicastError('closed', 'the client is closed'));
      };
      const off = this.on('state', look);
      look({ state: this.state });
    });
  }

  /** Something outside says that now is a good moment to connect (pages do by themselves): `wx.onAppShow`, React Native's `AppState`. */
  wake(): void {
    this.#link.wake();
  }

  /** Ends it for good: positions are stored, publishes without an answer reject with `closed`. */
  close(): void {
    this.#direct.flush();
    this.#link.close();
  }

  #createLink(address: string): Link {
    const { backoff, fetch = ownFetch(), random = Math.random, webSocket } = this.#options;
    return new Link(
      { address, tokens: this.#tokens, webSocket, fetch, backoff: { ...defaultBackoff, ...backoff }, random },
      {
        prepare: () => this.#prepare(),
        topics: (token) => this.#subscriptions.handshake(token),
        opened: () => {
          this.#direct.flush();
          this.#subscriptions.opened();
          this.#outbox.flush();
        },
        frame: (frame, data) => this.#receive(frame, data),
        lost: () => {
          this.#subscriptions.detach();
          this.#outbox.detach();
          this.#direct.detach();
        },
        changed: (change) => this.#changed(change),
        error: (error) => this.#report(error),
      },
    );
  }

  async #prepare(): Promise<WireCodec> {
    const user = this.#options.user ?? this.#tokens.claims.sub ?? '';
    this.#subscriptions.restore(await this.#cursors.load(`topicast:${this.#base}:${user}`));
    return this.#codec ?? (await this.#loadCodec());
  }

  #loadCodec(): Promise<WireCodec> {
    this.#codecLoading ??= import('./msgpack.js').then(
      ({ msgpack }) => (this.#codec = msgpack),
      (cause: unknown) => {
        // A page whose network is away right now can load it later.
        this.#codecLoading = undefined;
        throw new TopicastError('unavailable', `MessagePack could not be loaded: ${textOf(cause)}`, {
          cause,
        });
      },
    );
    return this.#codecLoading;
  }

  #changed(change: StateChange): void {
    if (change.state === 'closed') {
      this.#unwatch();
      this.#cursors.save();
      this.#outbox.close(change.error ?? new TopicastError('closed', 'the client was closed'));
    }
    this.#emit('state', change);
    if (change.error !== undefined) this.#report(change.error);
  }

  #receive(frame: ServerFrame, data: unknown): void {
    switch (frame.type) {
      case 'msg':
        return this.#subscriptions.message(frame, data);
      case 'subscribed':
        return this.#subscriptions.subscribed(frame);
      case 'unsubscribed':
        return this.#subscriptions.unsubscribed(frame);
      case 'gap':
        return this.#subscriptions.gap(frame);
      case 'resync':
        return this.#subscriptions.resync(frame);
      case 'pong':
        return this.#subscriptions.floors(frame);
      case 'direct':
        return this.#direct.receive(frame.id === undefined ? { data } : { id: frame.id, data });
      case 'published':
        return this.#outbox.published(frame);
      case 'expiring':
        return this.#expiring(frame.inSec);
      case 'error':
        return this.#failed(frame);
      case 'welcome':
      case 'bye':
        // The link's own.
        return;
    }
  }

  #failed(frame: FrameOf<'error'>): void {
    const { req, code, message, topic } = frame;
    if (this.#outbox.failed(frame)) return;
    if (req !== undefined && this.#subscriptions.failed(req)) return;
    if (req !== undefined && req === this.#authReq) return this.#renewalRefused(message);
    this.#report(new TopicastError(code, message, detailsOf(topic)));
  }

  #expiring(inSec: number): void {
    this.#emit('expiring', { inSec });
    if (!this.#tokens.renewable) return;
    this.#tokens.renew().then(
      (token = '') => {
        this.#authReq = ++this.#req;
        this.#link.send({ type: 'auth', req: this.#authReq, token });
      },
      // The connection ends with the token, and the next one asks for a token again.
      (error: unknown) => this.#onThrow(error),
    );
  }

  /** The connection lasts as long as its token; the next one must not begin with what was refused. */
  #renewalRefused(reason: string): void {
    this.#tokens.expire();
    this.#report(new TopicastError('token', `the server refused the fresh token: ${reason}`));
  }

  readonly #emitMessage = (message: Message): void => {
    if (this.#once.take(message)) this.#emit('message', message);
  };

  #call(handler: MessageHandler, message: Message): void {
    try {
      const handling = handler(message);
      if (handling instanceof Promise) {
        handling.catch((thrown: unknown) => this.#onThrow(thrown, message.topic));
      }
    } catch (thrown) {
      this.#onThrow(thrown, message.topic);
    }
  }

  #emit<K extends keyof ClientEvents>(name: K, event: ClientEvents[K]): void {
    this.#events.emit(name, event, (thrown) => this.#onThrow(thrown));
  }

  #onThrow(cause: unknown, topic?: string): void {
    if (cause instanceof TopicastError) return this.#report(cause);
    const message = `a handler failed: ${textOf(cause)}`;
    this.#report(new TopicastError('handler', message, { cause, ...detailsOf(topic) }));
  }

  #report(error: TopicastError): void {
    // A listener of errors that throws itself must not be asked again.
    const heard = this.#events.emit('error', error, (thrown) => console.error(thrown));
    if (!heard) console.error(error);
  }
}

function checkFilter(filter: string): string {
  const parsed: Result<string> = parseFilter(filter);
  if (!parsed.ok) throw new TypeError(`not a topic: ${filter}: ${parsed.message}`);
  return filter;
}

function payloadOf(codec: WireCodec, topic: string, data: unknown): ReturnType<WireCodec['payload']> {
  try {
    return codec.payload(data);
  } catch (cause) {
    throw new TopicastError('invalid_frame', `data cannot be sent: ${textOf(cause)}`, { cause, topic });
  }
}

/** `JSON.stringify` writes lone surrogates as escapes, so this never throws. Not `TextEncoder`, which mini-programs lack. */
function utf8Bytes(text: string): number {
  return encodeURIComponent(text).replace(/%../g, '.').length;
}

function ownFetch(): FetchLike | undefined {
  const { fetch } = globalThis as { fetch?: FetchLike };
  return fetch?.bind(globalThis);
}

function detailsOf(topic: string | undefined): { topic?: string } {
  return topic === undefined ? {} : { topic };
}
