import { BrokerError } from '../broker/errors.js';
import { isPattern, matches } from '../protocol/topic.js';
import type { Authenticator } from './auth.js';
import type { Channels } from './channels.js';
import type { Connections } from './connections.js';
import type { Direct } from './direct.js';
import type { Logger } from './log.js';
import { readCommand, type BlockedToken, type NodeStats, type PeerCommand } from './peer-commands.js';
import type { Session } from './session.js';
import { filtersOf, type Subscriptions } from './subscriptions.js';

export interface PeerServiceOptions {
  readonly connections: Pick<Connections, 'all'>;
  readonly subscriptions: Pick<Subscriptions, 'subscribe' | 'unsubscribe'>;
  readonly channels: Pick<Channels, 'subscribersOf'>;
  readonly direct: Pick<Direct, 'hintHere' | 'sendHere'>;
  readonly authenticator: Pick<Authenticator, 'blockToken' | 'blockedTokens'>;
  readonly stats: () => NodeStats;
  readonly log: Pick<Logger, 'error' | 'warn'>;
}

/** Does on this node what nodes ask for, this one included. */
export class PeerService {
  readonly #options: PeerServiceOptions;

  constructor(options: PeerServiceOptions) {
    this.#options = options;
  }

  /** A `CommandHandler`. @throws BrokerError `unknown_type` for what is no command of this version */
  async handle(value: unknown): Promise<unknown> {
    const command = readCommand(value);
    if (command === undefined) {
      this.#options.log.warn('a command of a node is not understood');
      throw new BrokerError('unknown_type', 'not a command of this version');
    }
    try {
      return this.#execute(command);
    } catch (error) {
      this.#options.log.error({ err: error, command: command.type }, 'a command of a node failed');
      throw error;
    }
  }

  #execute(command: PeerCommand): unknown {
    const { authenticator, channels, direct } = this.#options;
    switch (command.type) {
      case 'hint':
        return direct.hintHere(command.sessions, command, command.prev);
      case 'send':
        return direct.sendHere(command.sessions, command.payload);
      case 'tokens':
        return tokensOf(this.#sessionsOf(command.userId));
      case 'kick':
        return this.#kick(command.userId, command.tokens);
      case 'blocked':
        return authenticator.blockedTokens();
      case 'subscribe':
        return this.#each(command.userId, (session) => this.#subscribe(session, command.topics));
      case 'unsubscribe':
        return this.#each(command.userId, (session) => this.#unsubscribe(session, command.topics));
      case 'count':
        return channels.subscribersOf(command.topic);
      case 'users':
        return this.#usersOf(command.topic);
      case 'stats':
        return this.#options.stats();
    }
  }

  #kick(userId: string, tokens: readonly BlockedToken[]): number {
    const sessions = this.#sessionsOf(userId);
    for (const { expSec, id } of [...tokens, ...tokensOf(sessions)]) {
      this.#options.authenticator.blockToken(id, expSec);
    }
    for (const session of sessions) session.close('kicked', 'closed by an operator');
    return sessions.length;
  }

  #subscribe(session: Session, topics: readonly string[]): void {
    session.serverTopics ??= new Set();
    for (const topic of topics) session.serverTopics.add(topic);
    const held = new Set(filtersOf(session));
    // Naming a topic that it has already would start that over.
    const requests = topics.filter((topic) => !held.has(topic)).map((topic) => ({ topic }));
    const frame = { type: 'subscribe', topics: requests } as const;
    if (requests.length > 0 && !session.holdFrame(frame)) {
      this.#options.subscriptions.subscribe(session, requests, undefined);
    }
  }

  #unsubscribe(session: Session, topics: readonly string[]): void {
    for (const topic of topics) session.serverTopics?.delete(topic);
    if (session.holdFrame({ type: 'unsubscribe', topics })) return;
    const held = new Set(filtersOf(session));
    const ended = topics.filter((topic) => held.has(topic));
    if (ended.length === 0) return;
    this.#options.subscriptions.unsubscribe(session, ended);
    session.send({ type: 'unsubscribed', topics: ended, reason: 'server' });
  }

  /** Event streams have no presence. */
  #usersOf(topic: string): string[] {
    const users = new Set<string>();
    for (const session of this.#options.connections.all()) {
      if (!session.isStream && hears(session, topic)) users.add(session.userId);
    }
    return [...users];
  }

  #each(userId: string, change: (session: Session) => void): number {
    const sessions = this.#sessionsOf(userId);
    for (const session of sessions) change(session);
    return sessions.length;
  }

  /** Event streams among them. */
  #sessionsOf(userId: string): Session[] {
    return [...this.#options.connections.all()].filter((session) => session.userId === userId);
  }
}

/** The tokens of sessions that end; the API key and open mode have none. */
function tokensOf(sessions: readonly Session[]): BlockedToken[] {
  return sessions.flatMap(({ principal: { expSec, tokenId } }) =>
    expSec === undefined ? [] : [{ id: tokenId, expSec }],
  );
}

function hears(session: Session, topic: string): boolean {
  return session.attachments.some(({ members }) =>
    members.some(({ filter }) => filter === topic || (isPattern(filter) && matches(filter, topic))),
  );
}
