import { sessionTtlSec, type SessionStore } from '../broker/sessions.js';
import type { Connections } from './connections.js';
import type { Direct } from './direct.js';
import type { Logger } from './log.js';
import type { Counters } from './metrics.js';
import type { Session } from './session.js';

export interface HeartbeatOptions {
  readonly connections: Pick<Connections, 'all'>;
  readonly store: Pick<SessionStore, 'refresh'>;
  readonly direct: Pick<Direct, 'onNewest'>;
  readonly pingSec: number;
  readonly idleSec: number;
  readonly slowSec: number;
  readonly expiringSec: number;
  readonly log: Pick<Logger, 'warn'>;
  readonly counters: Pick<Counters, 'slowCloses'>;
}

/** How often all sessions are looked at. One pass over 20,000 costs about a millisecond, a timer for each would cost memory. */
const sweepMs = 1000;
const refreshMs = (sessionTtlSec * 1000) / 3;
/**
 * How long sessions that are due are gathered, in sweeps: those that are refreshed together share commands, and there are some for each shard of the users
 * online, however few they are.
 */
const gatherSweeps = 10;
const gatherMs = gatherSweeps * sweepMs;
const refreshBatchMax = 500;
/** Refreshes that may fail in a row before the node counts as degraded. */
const refreshFailuresMax = 3;

/** What happens to sessions by time alone: pings, idle cut, the end of tokens, slow readers, and the refresh of their records. */
export class Heartbeat {
  readonly #options: HeartbeatOptions;
  #timer: NodeJS.Timeout | undefined;
  #refreshing = false;
  /** Sweeps until sessions are refreshed again. */
  #untilRefresh = 0;
  #failures = 0;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
  }

  /** The store has refused several refreshes in a row: presence and direct messages are not to be relied on. */
  get degraded(): boolean {
    return this.#failures >= refreshFailuresMax;
  }

  start(): void {
    this.#timer = setInterval(() => this.sweep(Date.now()), sweepMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Refreshes all sessions at the next sweep, and so compares what they were sent with the queues: hints may have been lost. */
  refreshSoon(): void {
    for (const session of this.#options.connections.all()) session.refreshed = 0;
    this.#untilRefresh = 0;
  }

  /** @param now ms since the Unix epoch */
  sweep(now: number): void {
    const due: Session[] = [];
    const refreshes = --this.#untilRefresh <= 0 && !this.#refreshing;
    if (refreshes) this.#untilRefresh = gatherSweeps;
    for (const session of this.#options.connections.all()) {
      this.#check(session, now);
      // Whoever is due before the next time is refreshed now.
      if (refreshes && session.isRegistered && now - session.refreshed > refreshMs - gatherMs) {
        due.push(session);
      }
    }
    if (due.length > 0) void this.#refresh(due, now);
  }

  #check(session: Session, now: number): void {
    const { counters, expiringSec, idleSec, pingSec, slowSec } = this.#options;
    const { expSec } = session.principal;
    const silentMs = now - session.active;
    if (expSec !== undefined && now >= expSec * 1000) {
      session.close('tokenExpired', 'the token has expired');
    } else if (session.isLost && now - session.lostAt >= slowSec * 1000) {
      counters.slowCloses++;
      session.close('slowConsumer', `took nothing for ${slowSec} s`);
    } else if (silentMs >= idleSec * 1000 && !session.isStream) {
      session.close('idle', `nothing came for ${idleSec} s`);
    } else {
      if (expSec !== undefined && !session.toldExpiring && session.isOpen) {
        this.#warnExpiring(session, expSec - now / 1000, expiringSec);
      }
      // The answer of the browser counts as life, and proxies that cut quiet lines after a minute see traffic.
      if ((silentMs >= pingSec * 1000 || session.isStream) && now - session.pinged >= pingSec * 1000) {
        session.pinged = now;
        session.outlet.ping();
      }
    }
  }

  #warnExpiring(session: Session, leftSec: number, expiringSec: number): void {
    if (leftSec > expiringSec) return;
    session.toldExpiring = true;
    session.send({ type: 'expiring', inSec: Math.max(0, Math.floor(leftSec)) });
  }

  /** Never rejects: who could not be refreshed is due again at the next sweep. */
  async #refresh(due: readonly Session[], now: number): Promise<void> {
    this.#refreshing = true;
    let left = 0;
    let cause: unknown;
    try {
      for (let i = 0; i < due.length; i += refreshBatchMax) {
        const batch = due.slice(i, i + refreshBatchMax).filter((session) => !session.isClosed);
        const answers = await this.#options.store.refresh(batch.map((session) => session.record));
        for (const session of batch) {
          const newest = answers.get(session.userId);
          if (typeof newest === 'number') {
            session.refreshed = now;
            this.#options.direct.onNewest(session, newest);
          } else {
            left++;
            cause ??= newest;
          }
        }
      }
    } catch (error) {
      left++;
      cause ??= error;
    } finally {
      this.#refreshing = false;
    }
    this.#countRefresh(left, cause);
  }

  #countRefresh(left: number, cause: unknown): void {
    if (left === 0) {
      this.#failures = 0;
      return;
    }
    this.#failures++;
    this.#untilRefresh = 0;
    const report = { err: cause, sessions: left, inARow: this.#failures };
    this.#options.log.warn(report, 'sessions could not be refreshed and will be tried again');
  }
}
