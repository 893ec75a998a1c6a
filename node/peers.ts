import type { z } from 'zod';
import type { Cluster, NodeBeacon } from '../broker/cluster.js';
import { unavailable } from '../broker/errors.js';
import { nodeOfSession, type SessionRecord } from '../broker/sessions.js';
import type { Payload } from '../protocol/payload.js';
import type { Logger } from './log.js';
import {
  answers,
  wireCommand,
  type BlockedToken,
  type NodeStats,
  type PeerCommand,
  type Sent,
} from './peer-commands.js';

/** How long all nodes together have for an answer. */
const allMsMax = 2000;

/** An answer that was put together from many. */
export interface Gathered<T> {
  readonly value: T;
  /** Living nodes whose part is not in it. */
  readonly missing: number;
}

/** What this node says to the others, and asks of the whole cluster, itself included. */
export class Peers {
  readonly #cluster: Cluster;
  readonly #log: Pick<Logger, 'warn'>;

  constructor(cluster: Cluster, log: Pick<Logger, 'warn'>) {
    this.#cluster = cluster;
    this.#log = log;
  }

  /** The living nodes, this one first. */
  nodes(): readonly NodeBeacon[] {
    return this.#cluster.nodes();
  }

  /** Those of the sessions whose node is not known to be gone (G10). */
  living<T extends Pick<SessionRecord, 'id'>>(sessions: readonly T[]): T[] {
    return sessions.filter(({ id }) => !this.#cluster.isDead(nodeOfSession(id)));
  }

  /**
   * Tells sessions of one other node of a queued message. Never rejects: what a node was not told stays queued.
   * @returns how many of them exist
   */
  async hint(nodeId: string, hint: Omit<PeerCommand & { type: 'hint' }, 'type'>): Promise<number> {
    const answer = await this.#tell(nodeId, { type: 'hint', ...hint }, answers.count);
    return answer ?? 0;
  }

  /** Hands a message to sessions of one other node. Never rejects: of a node that does not answer nobody is known to be gone. */
  async send(nodeId: string, sessions: readonly string[], payload: Payload): Promise<Sent> {
    const command: PeerCommand = { type: 'send', sessions: [...sessions], payload };
    const answer = await this.#tell(nodeId, command, answers.sent);
    if (answer !== undefined) return answer;
    return { sent: 0, gone: this.#cluster.isDead(nodeId) ? sessions : [] };
  }

  /**
   * Closes all sessions of a user and has the tokens that they have shown refused by every node until those end.
   * @returns how many sessions there were
   * @throws BrokerError `unavailable` when a node did not answer; to be tried again then
   */
  async kick(userId: string): Promise<number> {
    const shown = await this.#askAll({ type: 'tokens', userId }, answers.tokens);
    // First known everywhere, then closed: whoever comes back at once is refused.
    const tokens = complete(shown, 'asked for the tokens of the user').flat();
    const closed = await this.#askAll({ type: 'kick', userId, tokens }, answers.count);
    return sum(complete(closed, 'told to close the sessions'));
  }

  /** The tokens that any node refuses, for a node that has just started. Never rejects. */
  async blockedTokens(): Promise<readonly BlockedToken[]> {
    try {
      return (await this.#askAll({ type: 'blocked' }, answers.tokens)).value.flat();
    } catch (error) {
      this.#log.warn({ err: error }, 'the blocked tokens of the cluster could not be read');
      return [];
    }
  }

  /**
   * Subscribes all sessions of a user to valid topics or patterns. @returns how many sessions there are
   * @throws BrokerError `unavailable` when a node did not answer; to be tried again then
   */
  async subscribe(userId: string, topics: readonly string[]): Promise<number> {
    const sessions = await this.#askAll({ type: 'subscribe', userId, topics: [...topics] }, answers.count);
    return sum(complete(sessions, 'told to subscribe'));
  }

  /** Ends subscriptions; otherwise as `subscribe`. */
  async unsubscribe(userId: string, topics: readonly string[]): Promise<number> {
    const sessions = await this.#askAll({ type: 'unsubscribe', userId, topics: [...topics] }, answers.count);
    return sum(complete(sessions, 'told to unsubscribe'));
  }

  /** Subscribers of a topic in the whole cluster. @throws BrokerError `unavailable` */
  async countSubscribers(topic: string): Promise<Gathered<number>> {
    const { missing, value } = await this.#askAll({ type: 'count', topic }, answers.count);
    return { value: sum(value), missing };
  }

  /** Users subscribed to a topic, each once. @throws BrokerError `unavailable` */
  async usersOf(topic: string): Promise<Gathered<readonly string[]>> {
    const { missing, value } = await this.#askAll({ type: 'users', topic }, answers.users);
    return { value: [...new Set(value.flat())], missing };
  }

  /** What each node has counted. @throws BrokerError `unavailable` */
  stats(): Promise<Gathered<readonly NodeStats[]>> {
    return this.#askAll({ type: 'stats' }, answers.stats);
  }

  /** Undefined when the node is gone or did not answer as it should. */
  async #tell<T>(nodeId: string, command: PeerCommand, schema: z.ZodType<T>): Promise<T | undefined> {
    try {
      const answer = await this.#cluster.ask(nodeId, wireCommand(command));
      return answer === undefined ? undefined : schema.parse(answer);
    } catch (error) {
      this.#log.warn({ err: error, node: nodeId, command: command.type }, 'a node could not be told');
      return undefined;
    }
  }

  async #askAll<T>(command: PeerCommand, schema: z.ZodType<T>): Promise<Gathered<readonly T[]>> {
    const given = await this.#cluster.askAll(wireCommand(command), allMsMax);
    const value = given.flatMap((answer) => {
      const read = schema.safeParse(answer);
      return read.success ? [read.data] : [];
    });
    return { value, missing: Math.max(0, this.#cluster.nodes().length - value.length) };
  }
}

function complete<T>({ missing, value }: Gathered<T>, what: string): T {
  if (missing === 0) return value;
  throw unavailable(`${missing} nodes that were ${what} did not answer; try again`);
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}
