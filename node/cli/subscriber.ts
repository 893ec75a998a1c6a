import { setTimeout as sleep } from 'node:timers/promises';
import { defaultBackoff, fullJitter, parseRetryAfter } from '../../client/backoff.js';
import { batches, topicsQuery } from '../../client/handshake.js';
import { shouldReconnect } from '../../protocol/codes.js';
import type { ServerFrame, SubscribedTopic, TopicRequest } from '../../protocol/frames.js';
import { CliFailure } from './errors.js';
import { addressOf, ask, type Target } from './http.js';
import { Link, type LinkEnd } from './link.js';
import { Positions } from './positions.js';

type FrameOf<T extends ServerFrame['type']> = Extract<ServerFrame, { type: T }>;

export interface SubscriberOptions {
  readonly target: Target;
  /** Who to be on a node that checks no tokens. */
  readonly user?: string;
  readonly requests: readonly TopicRequest[];
  /** 0 ≤ x < 1. */
  readonly random?: () => number;
}

export interface SubscriberEvents {
  readonly message: (frame: FrameOf<'msg'>) => void;
  /** To be acknowledged with `ack` once handled, when it has an id. */
  readonly direct: (frame: FrameOf<'direct'>) => void;
  /** A line for people: connected, lost, refused. */
  readonly status: (text: string) => void;
}

/** What to do after a connection ended. */
export type Verdict = { readonly fatal: string } | { readonly waitMs: number };

/** Acknowledgements wait this long for company, since frames a second are limited. */
const ackMs = 20;
/** A connection that lived this long was a good one: the next failure starts the backoff anew. */
const stableMs = 5_000;
const connectPath = 'v1/connect';

/**
 * A subscription that outlives its connections: it reconnects, resumes at its positions and drops what it had
 * before. It ends when it is told to, when the server says not to come back, or when nothing is left to hear.
 */
export class Subscriber {
  private readonly options: SubscriberOptions;
  private readonly events: SubscriberEvents;
  private readonly positions: Positions;
  private link: Link | undefined;
  private paused = false;
  private acks: number[] = [];
  private ackTimer: NodeJS.Timeout | undefined;
  private hopeless: string | undefined;
  private nextReq = 1;

  constructor(options: SubscriberOptions, events: SubscriberEvents) {
    this.options = options;
    this.events = events;
    this.positions = new Positions(options.requests);
  }

  /** Resolves after `signal` is aborted and the socket is closed; rejects with `CliFailure` when it is over. */
  async run(signal: AbortSignal): Promise<void> {
    const stopped = (): boolean => signal.aborted;
    let everWelcomed = false;
    for (let attempt = 0; !stopped(); attempt++) {
      const end = await this.connect(signal);
      if (stopped()) return;
      if (this.hopeless !== undefined) throw new CliFailure(this.hopeless);
      if (end.welcomedMs !== undefined) everWelcomed = true;
      const explained = await this.explain(end, signal);
      if (stopped()) return;
      const verdict = verdictOf(explained, this.options.target.url, everWelcomed);
      if ('fatal' in verdict) throw new CliFailure(verdict.fatal);
      if ((end.welcomedMs ?? 0) >= stableMs) attempt = 0;
      const waitMs = Math.max(
        fullJitter(attempt, defaultBackoff, this.options.random ?? Math.random),
        verdict.waitMs,
      );
      this.events.status(`reconnecting in ${(waitMs / 1000).toFixed(1)} s: ${explained.reason}`);
      await pause(waitMs, signal);
    }
  }

  /** The direct message was handled: the server may forget it. Kept for the next connection if there is none now. */
  ack(id: number): void {
    this.acks.push(id);
    this.ackTimer ??= setTimeout(() => this.flushAcks(), ackMs);
  }

  /** Stops reading from the connection (and those to come) until `resume`. */
  pause(): void {
    this.paused = true;
    this.link?.pause();
  }

  resume(): void {
    this.paused = false;
    this.link?.resume();
  }

  private async connect(signal: AbortSignal): Promise<LinkEnd> {
    const inQuery = queryOf(this.positions.requests(), this.options.target.token);
    const link = new Link(this.address(inQuery), this.options.target.token, {
      frame: (frame) => {
        if (frame.type === 'welcome') this.welcomed(link, inQuery === undefined);
        this.handle(frame);
      },
      fault: (text) => this.events.status(`ignored what the server sent: ${text}`),
    });
    this.link = link;
    const stop = (): void => {
      this.flushAcks();
      link.close();
    };
    signal.addEventListener('abort', stop, { once: true });
    const end = await link.ended;
    signal.removeEventListener('abort', stop);
    this.positions.detach();
    this.link = undefined;
    return end;
  }

  private address(topics: string | undefined): URL {
    const { target, user } = this.options;
    const address = addressOf(target, connectPath, { user, client: 'topicast-cli' });
    address.protocol = address.protocol === 'https:' ? 'wss:' : 'ws:';
    if (topics !== undefined) address.search += `&topics=${topics}`;
    return address;
  }

  /** A refusal that could not be read from the upgrade is asked for once more, without one. */
  private async explain(end: LinkEnd, signal: AbortSignal): Promise<LinkEnd> {
    if (end.welcomedMs !== undefined || end.status !== undefined) return end;
    const { target, user } = this.options;
    try {
      const answer = await ask(target, { method: 'GET', path: connectPath, query: { user }, signal });
      if (answer.status < 400) return end;
      const retryMs = parseRetryAfter(answer.retryAfter);
      const reason = `refused with ${answer.status}`;
      return { ...end, reason, status: answer.status, ...(retryMs === undefined ? {} : { retryMs }) };
    } catch (error) {
      if (error instanceof CliFailure) return end;
      throw error;
    }
  }

  private welcomed(link: Link, subscribeNow: boolean): void {
    if (this.paused) link.pause();
    this.flushAcks();
    if (subscribeNow) this.subscribe(this.positions.requests());
  }

  private subscribe(requests: readonly TopicRequest[]): void {
    for (const topics of batches(requests)) {
      this.link?.send({ type: 'subscribe', req: this.nextReq++, topics });
    }
  }

  private handle(frame: ServerFrame): void {
    const { status } = this.events;
    switch (frame.type) {
      case 'welcome':
        status(`connected: session ${frame.session}${degradedNote(frame.degraded)}`);
        break;
      case 'subscribed':
        for (const topic of frame.topics) this.subscribed(topic);
        break;
      case 'unsubscribed':
        for (const topic of frame.topics) this.unsubscribed(topic, frame.reason ?? 'by the server');
        break;
      case 'msg':
        if (this.positions.accept(frame)) this.events.message(frame);
        break;
      case 'direct':
        this.events.direct(frame);
        break;
      case 'gap':
        this.positions.gap(frame.topic, frame.to);
        status(`gap: ${frame.topic} lost ${frame.from} to ${frame.to} for good`);
        break;
      case 'resync':
        status(`fell behind, catching up: ${frame.topics.join(', ')}`);
        this.subscribe(this.positions.resync(frame.topics));
        break;
      case 'pong':
        this.positions.floors(frame.floors ?? {});
        break;
      case 'expiring':
        status(`expiring: the token ends in ${frame.inSec} s`);
        break;
      case 'bye':
        status(`bye: ${frame.reason} (${frame.code})`);
        break;
      case 'error':
        status(`error from the server: ${frame.code}: ${frame.message}`);
        break;
      case 'published':
        break;
    }
  }

  private subscribed(answer: SubscribedTopic): void {
    const outcome = this.positions.subscribed(answer);
    if ('error' in answer) {
      this.events.status(`topic refused: ${answer.topic} (${answer.error})`);
      this.endIfEmpty('every topic was refused');
    } else if (outcome === 'not-recovered') {
      this.events.status(
        `not recovered: ${answer.topic}: messages between the last one and now may be missing`,
      );
    }
  }

  private unsubscribed(topic: string, reason: string): void {
    this.positions.drop(topic);
    this.events.status(`unsubscribed: ${topic} (${reason})`);
    this.endIfEmpty('no topic is left');
  }

  private endIfEmpty(reason: string): void {
    if (this.positions.size > 0) return;
    this.hopeless = reason;
    this.link?.close();
  }

  private flushAcks(): void {
    clearTimeout(this.ackTimer);
    this.ackTimer = undefined;
    if (this.acks.length === 0 || this.link?.open !== true) return;
    this.link.send({ type: 'ack', ids: this.acks });
    this.acks = [];
  }
}

/**
 * Whether and when to come back. A node that was never reached is a wrong address until proven otherwise; one that was, is
 * away for a while. Refusals that would only be repeated are final.
 */
export function verdictOf(end: LinkEnd, url: URL, everWelcomed: boolean): Verdict {
  const { status, code } = end;
  if (status !== undefined) {
    if (status === 401) return { fatal: 'the token was refused (401): give a valid one with --token' };
    if (status === 403) return { fatal: 'the server does not allow this client (403)' };
    if (status < 500 && status !== 429) {
      return { fatal: `${url.origin} refused the connection with ${status}` };
    }
    return { waitMs: end.retryMs ?? 0 };
  }
  if (code !== undefined && !shouldReconnect(code)) {
    return { fatal: `closed by the server: ${end.reason} (${code})` };
  }
  if (!everWelcomed) return { fatal: `cannot connect to ${url.origin}: ${end.reason}` };
  return { waitMs: end.retryMs ?? 0 };
}

/** The value of `topics` in the handshake, or undefined when it does not fit there, be it for its length or for a `last`. */
export function queryOf(requests: readonly TopicRequest[], token?: string): string | undefined {
  const hasLast = requests.some((request) => request.last !== undefined && request.offset === undefined);
  return hasLast ? undefined : topicsQuery(requests, token);
}

function degradedNote(degraded: readonly string[] = []): string {
  return degraded.length === 0 ? '' : `; not available now: ${degraded.join(', ')}`;
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
