import type { ClientFrame } from '../protocol/frames.js';
import type { Codec } from '../protocol/codec.js';
import { jsonCodec } from '../protocol/codec-json.js';
import { msgpackCodec } from '../protocol/codec-msgpack.js';
import type { Limits } from '../protocol/limits.js';
import { failure, type Failure } from '../protocol/result.js';
import type { Authenticator } from './auth.js';
import type { Direct } from './direct.js';
import type { Logger } from './log.js';
import type { Counters } from './metrics.js';
import { failureOf, type Publisher } from './publisher.js';
import { createFrameLimiter, type FrameLimiter } from './rate.js';
import type { Session } from './session.js';
import { filtersOf, type Subscriptions } from './subscriptions.js';

export interface FrameHandlerOptions {
  readonly limits: Limits;
  readonly authenticator: Authenticator;
  readonly publisher: Publisher;
  readonly direct: Direct;
  readonly subscriptions: Subscriptions;
  readonly log: Logger;
  readonly counters: Pick<Counters, 'framesIn' | 'frameErrors'>;
}

/** Frames that could not be read, or came above the rate, before a connection is given up. */
const invalidFramesMax = 16;
const excessFramesMax = 10_000;

/** From the bytes of a client to what they ask for. Whatever comes in, the answer is a frame or a close code (G11). */
export class FrameHandler {
  readonly #options: FrameHandlerOptions;
  readonly #limiter: FrameLimiter;
  /** Whose fresh token is being checked. */
  readonly #checking = new Set<Session>();

  constructor(options: FrameHandlerOptions) {
    this.#options = options;
    this.#limiter = createFrameLimiter(options.limits.framesPerSecMax, options.limits.framesBurstMax);
  }

  /** @param bytes valid during the call only */
  receive(session: Session, bytes: Uint8Array, isBinary: boolean): void {
    const { counters, limits } = this.#options;
    const now = Date.now();
    session.active = now;
    const codec: Codec = session.format === 'json' ? jsonCodec : msgpackCodec;
    if (!this.#takeFrame(session, now)) return this.#excess(session, codec, bytes);
    if (bytes.length > limits.frameBytesMax) {
      return this.#refuse(
        session,
        failure('payload_too_large', `a frame has at most ${limits.frameBytesMax} bytes`),
      );
    }
    if (isBinary !== codec.binary) {
      return this.#invalid(
        session,
        failure('invalid_frame', `expected a ${codec.binary ? 'binary' : 'text'} message`),
      );
    }
    const decoded = codec.decodeClient(bytes);
    if (!decoded.ok) return this.#invalid(session, decoded);
    counters.framesIn[decoded.value.type]++;
    this.#take(session, decoded.value);
  }

  /** Handles the frames that a session has kept, in order. Some may have to be kept once more. */
  handleHeld(session: Session): void {
    for (const frame of session.takeHeldFrames()) this.#take(session, frame);
  }

  #take(session: Session, frame: ClientFrame): void {
    // What follows an `auth` is meant by the rights of the new token.
    if (!session.holdFrame(frame, this.#checking.has(session))) this.#handle(session, frame);
  }

  #handle(session: Session, frame: ClientFrame): void {
    switch (frame.type) {
      case 'subscribe':
        return this.#options.subscriptions.subscribe(session, frame.topics, frame.req);
      case 'unsubscribe':
        this.#options.subscriptions.unsubscribe(session, frame.topics);
        return session.send({ type: 'unsubscribed', ...requestOf(frame), topics: frame.topics });
      case 'publish':
        return this.#own(session, this.#publish(session, frame));
      case 'ack':
        return this.#own(session, this.#acknowledge(session, frame.ids));
      case 'ping':
        return this.#pong(session);
      case 'auth':
        return this.#own(session, this.#renew(session, frame));
    }
  }

  #own(session: Session, work: Promise<void>): void {
    work.catch((error: unknown) => session.fail(error));
  }

  async #publish(session: Session, frame: ClientFrame & { type: 'publish' }): Promise<void> {
    const { topic, data, id } = frame;
    const published = await this.#options.publisher.publish(session.principal, { topic, payload: data, id });
    if (!published.ok) return this.#refuse(session, { ...published, ...requestOf(frame) }, topic);
    const place = published.value;
    session.send({
      type: 'published',
      ...requestOf(frame),
      topic,
      ...(place !== undefined && { offset: place.offset, epoch: place.epoch }),
      ...(place?.duplicate === true && { duplicate: true }),
    });
  }

  async #acknowledge(session: Session, ids: readonly number[]): Promise<void> {
    try {
      await this.#options.direct.acknowledge(session.userId, ids);
    } catch (error) {
      // The messages stay queued and come again; the client may acknowledge again.
      this.#refuse(session, failureOf(error, this.#options.log));
    }
  }

  #pong(session: Session): void {
    const floors = this.#options.subscriptions.floors(session);
    session.send(floors === undefined ? { type: 'pong' } : { type: 'pong', floors });
  }

  async #renew(session: Session, frame: ClientFrame & { type: 'auth' }): Promise<void> {
    this.#checking.add(session);
    try {
      await this.#authenticate(session, frame);
    } finally {
      this.#checking.delete(session);
    }
    this.handleHeld(session);
  }

  /** A fresh token of the same user. What it no longer grants ends. */
  async #authenticate(session: Session, frame: ClientFrame & { type: 'auth' }): Promise<void> {
    const principal = await this.#options.authenticator.authenticate(frame.token);
    if (session.isClosed) return;
    if (principal?.userId !== session.userId) {
      return this.#refuse(session, failure('forbidden', 'not a valid token of this user', frame.req));
    }
    session.principal = principal;
    session.toldExpiring = false;
    const ended = filtersOf(session).filter((filter) => !session.maySubscribe(filter));
    if (ended.length === 0) return;
    this.#options.subscriptions.unsubscribe(session, ended);
    session.send({ type: 'unsubscribed', topics: ended, reason: 'forbidden' });
  }

  #refuse(session: Session, refused: Failure, topic?: string): void {
    const { code, message } = refused;
    this.#options.counters.frameErrors[code]++;
    session.send({
      type: 'error',
      ...requestOf(refused),
      code,
      message,
      ...(topic !== undefined && { topic }),
    });
  }

  #invalid(session: Session, refused: Failure): void {
    session.invalidFrames++;
    this.#refuse(session, refused);
    if (session.invalidFrames >= invalidFramesMax) session.close('invalidFrames', 'too many invalid frames');
  }

  #takeFrame(session: Session, now: number): boolean {
    if (session.frameDueMs <= now) session.excessFrames = 0;
    return this.#limiter.allow(session, now);
  }

  /** Answered, so that nobody waits in vain for what was not done. */
  #excess(session: Session, codec: Codec, bytes: Uint8Array): void {
    if (++session.excessFrames > excessFramesMax) {
      return session.close('invalidFrames', 'far above the frame rate');
    }
    const { framesPerSecMax, frameBytesMax } = this.#options.limits;
    const decoded = bytes.length > frameBytesMax ? undefined : codec.decodeClient(bytes);
    const req = decoded?.ok === true && 'req' in decoded.value ? decoded.value.req : undefined;
    this.#refuse(session, failure('rate_limited', `at most ${framesPerSecMax} frames a second`, req));
  }
}

function requestOf({ req }: { readonly req?: number }): { req?: number } {
  return req === undefined ? {} : { req };
}
