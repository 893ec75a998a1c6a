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
import type { Sent } from './peer-commands.js';
import type { Peers } from './peers.js';
import { SessionCache } from './session-cache.js';
import type { Session } from './session.js';

export interface DirectOptions {
  readonly queue: DirectQueue;
  readonly store: SessionStore;
  readonly nodeId: string;
  readonly peers: Pick<Peers, 'hint' | 'living' | 'send'>;
  /** The living session of this node with this id. */
  readonly sessionOf: (sessionId: string) => Session | undefined;
  readonly counters: Pick<Counters, 'directPushed' | 'directSent' | 'directAcked'>;
  readonly log: Logger;
}

export interface DirectPushed {
  /** Absent when it was not queued. */
  readonly id?: number;
  /** Living sessions that it was handed to, or whose nodes were told of it. */
  readonly sessions: number;
}

/**
 * Direct messages: from the publishers of this node to the sessions of any. The queue is the truth; what runs over the sockets is a hint. A session that has sent everything up
 * to `prev` takes the message at once, any other reads the queue, so nothing is skipped and nothing sent twice (G8).
 */
export class Direct {
  readonly #options: DirectOptions;
  /** Reads of the queue under way, by session: a hint that comes meanwhile makes them read again. */
  readonly #catchingUp = new Map<Session, { again: boolean }>();
  /** For messages that are kept nowhere. */
  readonly #cache = new SessionCache();

  constructor(options: DirectOptions) {
    this.#options = options;
  }

  /** Queues a message and hands it to the user's sessions, on whatever nodes. @throws BrokerError `queue_full`, `unavailable` */
  async push(userId: string, payload: Payload, ttlSec: number): Promise<DirectPushed> {
    const { id, prev, sessions } = await this.#options.queue.push(userId, payload, ttlSec);
    this.#options.counters.directPushed++;
    const told = await Promise.all(
      this.#byNode(sessions).map(async ([nodeId, ids]) =>
        nodeId === this.#options.nodeId
          ? this.hintHere(ids, { id, payload }, prev)
          : this.#options.peers.hint(nodeId, { sessions: ids, id, prev, payload }),
      ),
    );
    return { id, sessions: told.reduce((sum, count) => sum + count, 0) };
  }

  /**
   * Hands a message to whoever is connected now; it is kept nowhere. A device that has connected to another node within the last seconds may
   * be missed.
   * @throws BrokerError `unavailable`
   */
  async send(userId: string, payload: Payload): Promise<DirectPushed> {
    const { store } = this.#options;
    this.#options.counters.directPushed++;
    const cached = this.#cache.get(userId);
    const known = cached ?? (await store.sessionsOf(userId));
    if (cached === undefined) this.#cache.put(userId, known);
    const first = await this.#sendTo(known, payload);
    if (first.gone.length === 0) return { sessions: first.sent };
    this.#cache.drop(userId);
    if (cached === undefined) return { sessions: first.sent };
    const tried = new Set(cached.map(({ id }) => id));
    const others = (await store.sessionsOf(userId)).filter(({ id }) => !tried.has(id));
    return { sessions: first.sent + (await this.#sendTo(others, payload)).sent };
  }

  /** Tells sessions of this node of a queued message. Returns how many of them exist. */
  hintHere(sessionIds: readonly string[], message: DirectMessage, prev: number): number {
    const sessions = this.#here(sessionIds);
    for (const session of sessions) this.#hint(session, message, prev);
    return sessions.length;
  }

  /** Hands a message to sessions of this node. */
  sendHere(sessionIds: readonly string[], payload: Payload): Sent {
    const sessions = this.#here(sessionIds);
    const open = sessions.filter((session) => session.isOpen);
    for (const session of open) {
      session.send({ type: 'direct', data: transcode(payload, session.format) });
      this.#options.counters.directSent++;
    }
    const here = new Set(sessions.map(({ id }) => id));
    return { sent: open.length, gone: sessionIds.filter((id) => !here.has(id)) };
  }

  /** What waited for the user when the session was registered. Sent before anything newer. */
  deliverPending(session: Session, pending: readonly DirectMessage[], newest: number): void {
    // A session that is new here is not missed by this node at least.
    this.#cache.drop(session.userId);
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

  async #sendTo(sessions: readonly SessionRecord[], payload: Payload): Promise<Sent> {
    const answers = await Promise.all(
      this.#byNode(sessions).map(async ([nodeId, ids]) =>
        nodeId === this.#options.nodeId
          ? this.sendHere(ids, payload)
          : this.#options.peers.send(nodeId, ids, payload),
      ),
    );
    return {
      sent: answers.reduce((sum, { sent }) => sum + sent, 0),
      gone: answers.flatMap(({ gone }) => gone),
    };
  }

  /** Session ids by their node, without those of nodes that are known to be gone. */
  #byNode(sessions: readonly SessionRecord[]): [nodeId: string, sessionIds: string[]][] {
    const nodes = new Map<string, string[]>();
    for (const { id } of this.#options.peers.living(sessions)) {
      const nodeId = nodeOfSession(id);
      const ids = nodes.get(nodeId);
      if (ids === undefined) nodes.set(nodeId, [id]);
      else ids.push(id);
    }
    return [...nodes];
  }

  #here(sessionIds: readonly string[]): Session[] {
    return sessionIds.flatMap((id) => this.#options.sessionOf(id) ?? []);
  }
}
