import type { ClientFrame } from '../protocol/frames.js';
import type { Payload } from '../protocol/payload.js';
import { TopicastError } from './errors.js';
import type { FrameOf } from './connection.js';
import type { Published } from './types.js';

export interface OutboxOptions {
  /** Publishes without an answer, sent or not. */
  readonly queueMax: number;
  readonly perSecMax: number;
}

export interface OutboxHost {
  send(frame: ClientFrame): boolean;
  nextReq(): number;
}

interface Entry {
  readonly topic: string;
  readonly data: Payload;
  readonly id: string;
  readonly resolve: (published: Published) => void;
  readonly reject: (error: TopicastError) => void;
  /** ms since the Unix epoch when it was first sent; 0 before. */
  firstSent: number;
}

/** The server remembers ids for two minutes; what is sent again after that might be stored twice. */
const idMsMax = 110_000;
/** How many may be sent at once after a pause. */
const burstMax = 100;
const rateLimitedPauseMs = 1_000;

/**
 * Publishes on their way: sent at a rate that the server takes, kept while there is no connection, sent again with the same id when a
 * connection ended before the answer. Without a cut they arrive in the order of the calls.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #host: OutboxHost;
  #waiting: Entry[] = [];
  readonly #sent = new Map<number, Entry>();
  #allowance = burstMax;
  #refilled = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #pausedUntil = 0;

  constructor(options: OutboxOptions, host: OutboxHost) {
    this.#options = options;
    this.#host = host;
  }

  /** Rejects with `queue_full` at once, with the server's code, or with `closed` or `outcome_unknown`. */
  publish(topic: string, data: Payload, id: string): Promise<Published> {
    return new Promise((resolve, reject) => {
      const count = this.#waiting.length + this.#sent.size;
      if (count >= this.#options.queueMax) {
        reject(new TopicastError('queue_full', `${count} publishes wait for an answer already`, { topic }));
        return;
      }
      this.#waiting.push({ topic, data, id, resolve, reject, firstSent: 0 });
      this.flush();
    });
  }

  /** Sends what the rate allows now, the rest later. Does nothing without a connection. */
  flush(): void {
    const now = Date.now();
    const { perSecMax } = this.#options;
    this.#allowance = Math.min(burstMax, this.#allowance + ((now - this.#refilled) / 1000) * perSecMax);
    this.#refilled = now;
    while (this.#waiting.length > 0 && this.#allowance >= 1 && now >= this.#pausedUntil) {
      const entry = this.#waiting[0]!;
      if (this.#isForgotten(entry, now)) {
        this.#waiting.shift();
        continue;
      }
      const req = this.#host.nextReq();
      const { topic, data, id } = entry;
      if (!this.#host.send({ type: 'publish', req, topic, data, id })) return;
      this.#waiting.shift();
      this.#sent.set(req, entry);
      if (entry.firstSent === 0) entry.firstSent = now;
      this.#allowance--;
    }
    if (this.#waiting.length > 0) {
      const rateMs = Math.max(0, 1 - this.#allowance) * (1000 / perSecMax);
      this.#timer ??= setTimeout(
        () => {
          this.#timer = undefined;
          this.flush();
        },
        Math.ceil(Math.max(rateMs, this.#pausedUntil - now)),
      );
    }
  }

  published({ req, offset, epoch, duplicate }: FrameOf<'published'>): void {
    this.#take(req)?.resolve({
      ...(offset !== undefined && { offset }),
      ...(epoch !== undefined && { epoch }),
      ...(duplicate === true && { duplicate }),
    });
  }

  /** @returns whether the error was about a publish */
  failed({ req, code, message }: FrameOf<'error'>): boolean {
    const entry = this.#take(req);
    if (entry === undefined) return false;
    if (code === 'rate_limited') {
      // It was not handled. The node may be set to take less than the client thinks.
      this.#waiting.unshift(entry);
      this.#pausedUntil = Date.now() + rateLimitedPauseMs;
      this.flush();
    } else entry.reject(new TopicastError(code, message, { topic: entry.topic }));
    return true;
  }

  /** The connection is gone: what has no answer goes out again on the next, before anything newer. */
  detach(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#pausedUntil = 0;
    this.#allowance = burstMax;
    this.#waiting = [...this.#sent.values(), ...this.#waiting];
    this.#sent.clear();
  }

  /** Rejects everything. */
  close(error: TopicastError): void {
    this.detach();
    for (const { reject } of this.#waiting.splice(0)) reject(error);
  }

  #isForgotten(entry: Entry, now: number): boolean {
    if (entry.firstSent === 0 || now - entry.firstSent < idMsMax) return false;
    const message =
      'sent, but the line was away for too long to send it again safely: it may be stored or not';
    entry.reject(new TopicastError('outcome_unknown', message, { topic: entry.topic }));
    return true;
  }

  #take(req: number | undefined): Entry | undefined {
    const entry = req === undefined ? undefined : this.#sent.get(req);
    if (req !== undefined) this.#sent.delete(req);
    return entry;
  }
}
