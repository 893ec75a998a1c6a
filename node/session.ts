import type { Principal } from './auth.js';
import { closeCodes, type CloseReason } from '../protocol/codes.js';
import type { ClientFrame, ServerFrame } from '../protocol/frames.js';
import type { PayloadFormat } from '../protocol/payload.js';
import type { SessionRecord } from '../broker/sessions.js';
import type { Attachment, AttachmentHost } from './attachment.js';
import type { FrameRate } from './rate.js';
import type { Outlet } from './outlet.js';

/** What a session asks of the node. */
export interface SessionOwner {
  /** Lets go of the session's channels. */
  detach(session: Session): void;
  /** The session can be sent to again: what waited for it follows. */
  onRecovered(session: Session): void;
  /** Counts and logs something unexpected that ends the session. */
  onFault(session: Session, error: unknown): void;
  onDropped(): void;
}

export interface SessionIdentity {
  readonly id: string;
  readonly principal: Principal;
  readonly device: string | undefined;
  readonly format: PayloadFormat;
}

/** Frames kept while they cannot be handled: before `welcome`, until a slow reader has drained, or while a fresh token is checked. */
const heldFramesMax = 256;

/**
 * One accepted connection. It knows what it may send now: before `welcome` nothing; after the socket refused something nothing either
 * until it has drained, when the client is told to resync (G7).
 */
export class Session implements AttachmentHost, FrameRate {
  readonly id: string;
  readonly outlet: Outlet;
  readonly device: string | undefined;
  readonly format: PayloadFormat;
  readonly login: number;
  /** Changes with `auth`, never its user. */
  principal: Principal;
  attachments: Attachment[] = [];
  /** ms since the Unix epoch when something last came from the client. */
  active: number;
  /** ms since the Unix epoch when the node last pinged it, and when it last refreshed its record in the store. */
  pinged: number;
  refreshed: number;
  /** Newest direct message that this session was sent, or knows to be older than. */
  directSeen = 0;
  /** A direct message came while the session could not be sent to. */
  hintMissed = false;
  frameDueMs = 0;
  invalidFrames = 0;
  /** Frames above the rate since it last had its full burst. */
  excessFrames = 0;
  toldExpiring = false;
  /** Since when the socket takes nothing; 0 while it does. */
  lostAt = 0;
  /** The store knows it, so it has to be removed there. */
  isRegistered = false;
  /** An event stream: it has no presence and sends nothing. */
  isStream = false;
  /** What the server subscribed it to, beyond what its token grants. */
  serverTopics: Set<string> | undefined;
  readonly #owner: SessionOwner;
  #state: 'registering' | 'open' | 'lost' | 'closed' = 'registering';
  #heldFrames: ClientFrame[] | undefined;
  #outbox: ServerFrame[] | undefined;
  #resync: Set<string> | undefined;
  #drainWaiters: (() => void)[] | undefined;

  constructor(identity: SessionIdentity, outlet: Outlet, owner: SessionOwner, now: number) {
    this.id = identity.id;
    this.principal = identity.principal;
    this.device = identity.device;
    this.format = identity.format;
    this.outlet = outlet;
    this.login = now;
    this.active = now;
    this.pinged = now;
    this.refreshed = now;
    this.#owner = owner;
  }

  get userId(): string {
    return this.principal.userId;
  }

  get isOpen(): boolean {
    return this.#state === 'open';
  }

  get isLost(): boolean {
    return this.#state === 'lost';
  }

  get isClosed(): boolean {
    return this.#state === 'closed';
  }

  get record(): SessionRecord {
    const { id, userId, login, active, device } = this;
    return { id, userId, login, active, ...(device !== undefined && { device }) };
  }

  maySubscribe(filter: string): boolean {
    return this.principal.grants.canSubscribe(filter) || this.serverTopics?.has(filter) === true;
  }

  /** The first frame; from now on the session is served. */
  welcome(frame: ServerFrame): void {
    if (this.#state !== 'registering') return;
    this.#state = 'open';
    // Mostly its topics are answered in the same turn.
    this.outlet.sendWithNext(frame);
  }

  /** Sends a frame now, or after the resync when the socket takes nothing. */
  send(frame: ServerFrame): void {
    if (this.#state === 'open') {
      if (this.outlet.send(frame) !== 'dropped') return;
      this.onDropped();
    }
    if (this.#state !== 'lost') return;
    const outbox = (this.#outbox ??= []);
    outbox.push(frame);
    if (outbox.length > heldFramesMax) this.close('slowConsumer', 'does not read its answers');
  }

  /**
   * Whether the frame has to wait; then it is kept, and handed out by `takeHeldFrames`.
   * @param anyway for a reason that the session does not know
   */
  holdFrame(frame: ClientFrame, anyway = false): boolean {
    if (this.#state === 'open' && !anyway) return false;
    if (this.#state === 'closed') return true;
    this.#heldFrames ??= [];
    this.#heldFrames.push(frame);
    if (this.#heldFrames.length > heldFramesMax) this.close('slowConsumer', 'sends without reading');
    return true;
  }

  takeHeldFrames(): ClientFrame[] {
    const frames = this.#heldFrames ?? [];
    this.#heldFrames = undefined;
    return frames;
  }

  drained(): Promise<void> {
    if (this.#state === 'closed' || this.outlet.buffered() === 0) return Promise.resolve();
    return new Promise((resolve) => (this.#drainWaiters ??= []).push(resolve));
  }

  /** The socket refused something: the rest of what was published to it is gone too, so everything is detached at once. */
  onDropped(): void {
    if (this.#state === 'lost' || this.#state === 'closed') return;
    this.#state = 'lost';
    this.lostAt = Date.now();
    this.#owner.onDropped();
    this.resyncLater(this.attachments.flatMap((a) => a.members.map((m) => m.filter)));
    this.#owner.detach(this);
  }

  resyncLater(filters: Iterable<string>): void {
    this.#resync ??= new Set();
    for (const filter of filters) this.#resync.add(filter);
  }

  onHopeless(): void {
    this.close('slowConsumer', 'slower than its topics');
  }

  /** The transport has written everything that waited. */
  onDrained(): void {
    if (this.#state === 'lost') this.#recover();
    this.#wakeDrainWaiters();
  }

  /** Something went wrong that has no answer of its own. */
  fail(error: unknown): void {
    if (this.#state === 'closed') return;
    this.#owner.onFault(this, error);
    this.close('internal', 'internal error');
  }

  /** Says `bye` and closes; what the client should do follows from the code (`closeCodes`). */
  close(why: CloseReason, reason: string, retryMs?: number): void {
    if (this.#state === 'closed') return;
    const code = closeCodes[why];
    // A reader that takes nothing does not get a farewell either.
    if (this.#state !== 'lost') {
      this.outlet.send({ type: 'bye', code, reason, ...(retryMs !== undefined && { retryMs }) });
    }
    this.outlet.close(code, reason);
  }

  /** The transport is gone, whoever closed it. */
  onClosed(): void {
    this.#state = 'closed';
    this.#owner.detach(this);
    this.#heldFrames = undefined;
    this.#outbox = undefined;
    this.#wakeDrainWaiters();
  }

  #recover(): void {
    this.#state = 'open';
    this.lostAt = 0;
    const outbox = this.#outbox;
    this.#outbox = undefined;
    // Answers first: a `subscribed` after `resync` would look like the answer to what the client asks then.
    if (outbox !== undefined && !this.#sendAll(outbox)) return;
    const topics = [...(this.#resync ?? [])];
    this.#resync = undefined;
    if (this.#sendAll(topics.length > 0 ? [{ type: 'resync', topics }] : [])) this.#owner.onRecovered(this);
  }

  /** @returns whether the session can still be sent to */
  #sendAll(frames: readonly ServerFrame[]): boolean {
    for (const frame of frames) this.send(frame);
    return this.#state === 'open';
  }

  #wakeDrainWaiters(): void {
    const waiters = this.#drainWaiters;
    this.#drainWaiters = undefined;
    for (const wake of waiters ?? []) wake();
  }
}
