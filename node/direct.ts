import type { DirectQueue } from '../broker/direct-queue.js';
import {
  nodeOfSession,
  type DirectMessage,
  type SessionRecord,
  type SessionStore,
} from '../broker/sessions.js';
import type { Payload } from '../protocol/payload.js';
import { transcode } from '../protocol/transcode.js';
import type { Logger } from './log.js';
import type { Counters } from './metrics.js';
import type { Session } from './session.js';

export interface DirectOptions {
  readonly queue: DirectQueue;
  readonly store: SessionStore;
  readonly nodeId: string;
  /** The living session of this node with this id. */
  readonly sessionOf: (sessionId: string) => Session | undefined;
  readonly counters: Pick<Counters, 'directPushed' | 'directSent' | 'directAcked'>;
  readonly log: Logger;
}

export interface DirectPushed {
  /** Absent when it was not queued. */
  readonly id?: number;
  /** Living sessions that it was handed to. */
  readonly sessions: number;
}

/**
 * Direct messages on this node. The queue is the truth; what runs over the sockets is a hint. A session that has sent everything up
 * to `prev` takes the message at once, any other reads the queue, so nothing is skipped and nothing sent twice (G8).
 */
export class Direct {
  readonly #options: DirectOptions;
  /** Reads of the queue under way, by session: a hint that comes meanwhile makes them read again. */
  readonly #catchingUp = new Map<Session, { again: boolean }>();

  constructor(options: DirectOptions) {
    this.#options = options;
  }

  /** Queues a message and hands it to the user's sessions. @throws BrokerError `queue_full`, `unavailable` */
  async push(userId: string, payload: Payload, ttlSec: number): Promise<DirectPushed> {
    const { id, prev, sessions } = await this.#options.queue.push(userId, payload, ttlSec);
    this.#options.counters.directPushed++;
    let handed = 0;
    for (const session of this.#local(sessions)) {
      this.#hint(session, { id, payload }, prev);
      handed++;
    }
    return { id, sessions: handed };
  }

  /** Hands a message to whoever is connected now; it is kept nowhere. @throws BrokerError `unavailable` */
  async send(userId: string, payload: Payload): Promise<DirectPushed> {
    let handed = 0;
    for (const session of this.#local(await this.#options.store.sessionsOf(userId))) {
      if (!session.isOpen) continue;
      session.send({ type: 'direct', data: transcode(payload, session.format) });
      this.#options.counters.directSent++;
      handed++;
    }
    this.#options.counters.directPushed++;
    return { sessions: handed };
  }

  /** What waited for the user when the session was registered. Sent before anything newer. */
  deliverPending(session: Session, pending: readonly DirectMessage[], newest: number): void {
    for (const message of pending) {
      if (!session.isOpen) return;
      this.#deliver(session, message);
    }
    if (session.isOpen) session.directSeen = Math.max(session.directSeen, newest);
    this.resume(session);
  }

  /** The session can be sent to again: what was hinted meanwhile is read from the queue. */
  resume(session: Session): void {
    if (!session.hintMissed) return;
    session.hintMissed = false;
    this.catchUp(session);
  }

  /** Compares with the user's newest id, as told by a refresh of the session. */
  onNewest(session: Session, newest: number): void {
    if (newest > session.directSeen) this.catchUp(session);
  }

  /** Reads and sends what the session has not sent yet. */
  catchUp(session: Session): void {
    const running = this.#catchingUp.get(session);
    if (running !== undefined) {
      running.again = true;
      return;
    }
    this.#catchingUp.set(session, { again: false });
    this.#readQueue(session)
      .catch((error: unknown) => {
        // The next hint or refresh tries again: the messages stay in the queue.
        this.#options.log.warn({ err: error }, 'the direct queue of a user could not be read');
      })
      .finally(() => this.#catchingUp.delete(session));
  }

  /** @throws BrokerError `unavailable` */
  async acknowledge(userId: string, ids: readonly number[]): Promise<void> {
    this.#options.counters.directAcked += await this.#options.queue.acknowledge(userId, ids);
  }

  #hint(session: Session, message: DirectMessage, prev: number): void {
    if (message.id <= session.directSeen || session.isClosed) return;
    if (!session.isOpen) session.hintMissed = true;
    else if (prev <= session.directSeen && !this.#catchingUp.has(session)) this.#deliver(session, message);
    else this.catchUp(session);
  }

  async #readQueue(session: Session): Promise<void> {
    for (;;) {
      const messages = await this.#options.queue.pending(session.userId, session.directSeen);
      for (const message of messages) {
        if (!session.isOpen) return;
        this.#deliver(session, message);
      }
      const running = this.#catchingUp.get(session);
      if (running?.again !== true) return;
      running.again = false;
    }
  }

  #deliver(session: Session, message: DirectMessage): void {
    if (message.id <= session.directSeen) return;
    session.directSeen = message.id;
    this.#options.counters.directSent++;
    session.send({ type: 'direct', id: message.id, data: transcode(message.payload, session.format) });
  }

  #local(sessions: readonly SessionRecord[]): Session[] {
    const { nodeId, sessionOf } = this.#options;
    return sessions.flatMap(({ id }) => (nodeOfSession(id) === nodeId ? (sessionOf(id) ?? []) : []));
  }
}
