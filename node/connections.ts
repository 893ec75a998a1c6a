import type { Registration, SessionStore } from '../broker/sessions.js';
import type { Position } from '../protocol/position.js';
import type { TopicRequest } from '../protocol/frames.js';
import type { Direct } from './direct.js';
import type { FrameHandler } from './frame-handler.js';
import type { Logger } from './log.js';
import type { Counters } from './metrics.js';
import type { Outlet } from './outlet.js';
import { Session, type SessionIdentity, type SessionOwner } from './session.js';
import { SessionsByUser } from './sessions-by-user.js';
import { shortText } from './short-text.js';
import type { Subscriptions } from './subscriptions.js';

export interface ConnectionsOptions {
  readonly nodeId: string;
  readonly store: SessionStore;
  /** Whether topics are in reach; until they are, those that the node does not host yet are not answered. */
  readonly hasTopics: () => boolean;
  readonly subscriptions: Subscriptions;
  readonly direct: () => Direct;
  readonly frames: () => FrameHandler;
  readonly pingSec: number;
  readonly idleSec: number;
  /** Sessions of one user on this node; 0: no limit. */
  readonly perUserMax: number;
  readonly log: Logger;
  readonly counters: Pick<Counters, 'connectionsOpened' | 'resyncs' | 'faults'>;
}

/** How long a client waits for its registration before it is welcomed without. */
const registerMsMax = 2000;
const registerRetryMs = 1000;

/** The sessions of this node, from the accepted socket to its end. There is one way in and one way out (R4). */
export class Connections implements SessionOwner {
  readonly #options: ConnectionsOptions;
  readonly #sessions = new Map<string, Session>();
  readonly #byUser = new SessionsByUser<Session>();
  /** Writes to the store that shutting down waits for. */
  readonly #writes = new Set<Promise<unknown>>();
  #counter = 0;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#sessions.size;
  }

  get(sessionId: string): Session | undefined {
    return this.#sessions.get(sessionId);
  }

  all(): IterableIterator<Session> {
    return this.#sessions.values();
  }

  ofUser(userId: string): readonly Session[] {
    return this.#byUser.of(userId);
  }

  /** An accepted connection: registers it, welcomes it, and subscribes it to what it named. */
  open(identity: Omit<SessionIdentity, 'id'>, topics: readonly TopicRequest[], outlet: Outlet): Session {
    const { counters, nodeId, perUserMax } = this.#options;
    const id = `${nodeId}.${shortText(++this.#counter)}`;
    const session = new Session({ ...identity, id }, outlet, this, Date.now());
    this.#sessions.set(id, session);
    const count = this.#byUser.add(session);
    counters.connectionsOpened++;
    if (perUserMax > 0 && count > perUserMax) {
      session.close('tooManyConnections', `more than ${perUserMax} connections of this user`);
    } else {
      this.#welcome(session, topics).catch((error: unknown) => session.fail(error));
    }
    return session;
  }

  /** An event stream: no presence, no direct messages, which it could not acknowledge. */
  openStream(
    identity: Omit<SessionIdentity, 'id'>,
    topics: readonly TopicRequest[],
    outlet: Outlet,
  ): Session {
    const { counters, nodeId, subscriptions } = this.#options;
    const id = `${nodeId}.${shortText(++this.#counter)}`;
    const session = new Session({ ...identity, id }, outlet, this, Date.now());
    session.isStream = true;
    this.#sessions.set(id, session);
    counters.connectionsOpened++;
    session.welcome(this.#welcomeFrame(session, true));
    subscriptions.subscribe(session, topics, undefined);
    return session;
  }

  /** The transport is gone. */
  closed(session: Session): void {
    if (!this.#sessions.delete(session.id)) return;
    this.#byUser.delete(session);
    session.onClosed();
    if (session.isRegistered) this.#unregister(session);
  }

  detach(session: Session): void {
    this.#options.subscriptions.abandonAll(session);
  }

  onRecovered(session: Session): void {
    this.#options.direct().resume(session);
    this.#options.frames().handleHeld(session);
  }

  onFault(session: Session, error: unknown): void {
    this.#options.counters.faults++;
    this.#options.log.error(
      { err: error, session: session.id },
      'unexpected fault, the connection is closed',
    );
  }

  onDropped(): void {
    this.#options.counters.resyncs++;
  }

  /** The stream of a namespace was replaced. */
  restart(namespace: string, head: Position): void {
    for (const session of this.#sessions.values()) {
      this.#options.subscriptions.restart(session, namespace, head);
    }
  }

  /** Resolves when the store knows of every session that has closed. */
  async settled(): Promise<void> {
    while (this.#writes.size > 0) await Promise.allSettled(this.#writes);
  }

  async #welcome(session: Session, topics: readonly TopicRequest[]): Promise<void> {
    const registration = this.#register(session);
    const inTime = await within(registerMsMax, registration);
    session.welcome(this.#welcomeFrame(session, inTime !== undefined));
    if (inTime !== undefined) this.#registered(session, inTime);
    else {
      void registration.then((late) => {
        if (late !== undefined) this.#registered(session, late);
      });
    }
    this.#options.subscriptions.subscribe(session, topics, undefined);
    this.#options.frames().handleHeld(session);
  }

  #welcomeFrame(session: Session, hasDirect: boolean) {
    const { hasTopics, idleSec, nodeId, pingSec } = this.#options;
    const { expSec } = session.principal;
    const degraded = [...(hasDirect ? [] : ['direct']), ...(hasTopics() ? [] : ['topics'])];
    return {
      type: 'welcome' as const,
      session: session.id,
      node: nodeId,
      pingSec,
      idleSec,
      ...(expSec !== undefined && { expiresInSec: Math.max(0, Math.floor(expSec - Date.now() / 1000)) }),
      ...(degraded.length > 0 && { degraded }),
    };
  }

  /** Tries until the store takes it; undefined when the session closed before. Never rejects. */
  async #register(session: Session): Promise<Registration | undefined> {
    while (!session.isClosed) {
      try {
        const registration = await this.#options.store.register(session.record);
        session.isRegistered = true;
        if (!isClosed(session)) return registration;
        // It closed in between, when there was nothing to remove yet.
        this.#unregister(session);
      } catch (error) {
        this.#options.log.warn({ err: error }, 'a session could not be registered and will be tried again');
        await after(registerRetryMs);
      }
    }
    return undefined;
  }

  #registered(session: Session, { pending, newest }: Registration): void {
    this.#options.direct().deliverPending(session, pending, newest);
  }

  #unregister(session: Session): void {
    const write = this.#options.store.remove(session.userId, session.id).catch((error: unknown) => {
      // The record expires by itself.
      this.#options.log.warn({ err: error }, 'a closed session could not be removed from the store');
    });
    this.#writes.add(write);
    void write.finally(() => this.#writes.delete(write));
  }
}

/** A call, because it changes while the store is asked. */
function isClosed(session: Session): boolean {
  return session.isClosed;
}

/** Undefined when it takes longer. A timer that is left running would outlive the young generation of the heap, in a storm by thousands. */
async function within<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, ms, undefined).unref();
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

function after(ms: number): Promise<undefined> {
  return new Promise((resolve) => setTimeout(resolve, ms, undefined).unref());
}
