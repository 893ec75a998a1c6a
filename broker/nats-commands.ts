import { createInbox, type Msg, type NatsConnection } from 'nats';
import type { CommandHandler } from './cluster.js';
import { CommandBatches, type PendingCommand } from './command-batches.js';
import { failureOf, outcomeOf, readAnswers, readList, type Answer } from './command-messages.js';
import { unavailable, type BrokerError } from './errors.js';

export interface NatsCommandsOptions {
  readonly nc: NatsConnection;
  readonly nodeId: string;
  readonly subjectOf: (nodeId: string) => string;
  /** Where commands for all nodes go. */
  readonly allSubject: string;
  readonly askMsMax: number;
  /** Something came that is not of this protocol. */
  readonly onIgnored: (subject: string) => void;
}

/** What `ask` resolves to when nobody listens for that node. */
export const nobody = Symbol('nobody');

/** Somebody who waits for the answers of one or more nodes to one message. */
interface Waiting {
  /** The parts of answers that came in several messages, by node. */
  readonly parts: Map<string, Uint8Array[]>;
  answered(nodeId: string, answers: readonly Answer[]): void;
  /** Nobody listens where the message went. */
  nobody(): void;
  failed(error: BrokerError): void;
  readonly timer: NodeJS.Timeout;
  /** Runs until an answer counts as slow. */
  readonly slow?: NodeJS.Timeout;
}

/** Nodes that have not answered by now may be gone. */
const slowMs = 250;
const answerPartsMax = 256;
const bytesMaxDefault = 1024 * 1024;
const nodeIdSyntax = /^[A-Za-z0-9_-]{1,128}$/;

/**
 * Commands and their answers over NATS. A message is a JSON list of commands; it is answered by the list of their outcomes, on a subject below
 * its reply that names the node and says whether more of the text follows, as an answer may be longer than a NATS message.
 */
export class NatsCommands {
  readonly #options: NatsCommandsOptions;
  readonly #inbox = createInbox();
  readonly #waiting = new Map<number, Waiting>();
  readonly #batches: CommandBatches;
  #subscriptions: { unsubscribe(): void }[] = [];
  #counter = 0;

  constructor(options: NatsCommandsOptions) {
    this.#options = options;
    this.#batches = new CommandBatches(
      () => this.#bytesMax,
      (nodeId, commands) => this.#send(nodeId, commands),
    );
  }

  /** Whether a text can be the id of a node, and so a token of a subject. */
  static isNodeId(text: string): boolean {
    return nodeIdSyntax.test(text);
  }

  /** Takes commands for this node and answers to its own. */
  start(handle: CommandHandler): void {
    const { allSubject, nc, nodeId, subjectOf } = this.#options;
    const listen = (subject: string, take: (message: Msg) => void): void => {
      const callback = (error: Error | null, message: Msg): void => {
        if (error === null) take(message);
        else this.#options.onIgnored(subject);
      };
      this.#subscriptions.push(nc.subscribe(subject, { callback }));
    };
    listen(`${this.#inbox}.>`, (message) => this.#onAnswer(message));
    for (const subject of [subjectOf(nodeId), allSubject]) {
      listen(subject, (message) => {
        // What this node asks of all comes back to it as well, and it has answered that itself.
        if (message.reply?.startsWith(`${this.#inbox}.`) !== true) void this.#onCommands(message, handle);
      });
    }
  }

  /** See `Cluster.ask`; but `nobody` instead of undefined when the node does not exist. */
  ask(nodeId: string, command: unknown): Promise<unknown> {
    return this.#batches.add(nodeId, command);
  }

  /**
   * Asks all nodes at once.
   * @param isComplete whether nothing more is to come, told the nodes that have answered
   * @param onSlow called once when it takes long, to find out who is gone
   * @returns the answers that are no failures
   */
  askAll(
    command: unknown,
    timeoutMs: number,
    isComplete: (answered: ReadonlySet<string>) => boolean,
    onSlow: (answered: ReadonlySet<string>) => Promise<void>,
  ): Promise<unknown[]> {
    return new Promise((resolve, reject) => {
      const nodes = new Set<string>();
      const values: unknown[] = [];
      const number = ++this.#counter;
      if (isComplete(nodes)) return resolve(values);
      const finish = (): void => {
        this.#forget(number);
        resolve(values);
      };
      const slow = setTimeout(() => {
        void onSlow(nodes).then(() => {
          if (this.#waiting.has(number) && isComplete(nodes)) finish();
        });
      }, slowMs);
      this.#waiting.set(number, {
        parts: new Map(),
        answered: (nodeId, [answer]) => {
          if (nodes.has(nodeId)) return;
          nodes.add(nodeId);
          if (answer !== undefined && !('error' in answer)) values.push(answer.ok);
          if (isComplete(nodes)) finish();
        },
        nobody: finish,
        failed: reject,
        slow,
        timer: setTimeout(finish, timeoutMs),
      });
      this.#publish(this.#options.allSubject, `[${JSON.stringify(command)}]`, number);
    });
  }

  /** Whether somebody listens for a node; true when that cannot be found out. */
  exists(nodeId: string): Promise<boolean> {
    return new Promise((resolve) => {
      const number = ++this.#counter;
      const finish = (exists: boolean): void => {
        this.#forget(number);
        resolve(exists);
      };
      this.#waiting.set(number, {
        parts: new Map(),
        answered: () => finish(true),
        nobody: () => finish(false),
        failed: () => finish(true),
        timer: setTimeout(() => finish(true), this.#options.askMsMax),
      });
      this.#publish(this.#options.subjectOf(nodeId), '[]', number);
    });
  }

  /** What is under way will not be answered any more. */
  abandon(reason: string): void {
    const error = unavailable(reason);
    for (const [number, waiting] of [...this.#waiting]) {
      this.#forget(number);
      waiting.failed(error);
    }
    this.#batches.abandon(error);
  }

  stop(): void {
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
    this.#subscriptions = [];
    this.abandon('the node is stopping');
  }

  get #bytesMax(): number {
    return this.#options.nc.info?.max_payload ?? bytesMaxDefault;
  }

  #send(nodeId: string, commands: readonly PendingCommand[]): void {
    const number = ++this.#counter;
    const rejectAll = (error: BrokerError): void => {
      this.#forget(number);
      for (const { reject } of commands) reject(error);
    };
    const late = (): void => rejectAll(unavailable('a node does not answer in time'));
    // It may have crashed with these commands on their way to it, which nobody reports.
    const slow = setTimeout(() => {
      void this.exists(nodeId).then((exists) => {
        if (!exists) this.#waiting.get(number)?.nobody();
      });
    }, slowMs);
    this.#waiting.set(number, {
      slow,
      parts: new Map(),
      answered: (_nodeId, answers) => {
        this.#forget(number);
        for (const [i, { reject, resolve }] of commands.entries()) {
          const answer = answers[i];
          if (answer === undefined) reject(unavailable('a node did not answer a command'));
          else if ('error' in answer) reject(failureOf(answer.error));
          else resolve(answer.ok);
        }
      },
      nobody: () => {
        this.#forget(number);
        for (const { resolve } of commands) resolve(nobody);
      },
      failed: rejectAll,
      timer: setTimeout(late, this.#options.askMsMax),
    });
    const body = `[${commands.map(({ text }) => text).join(',')}]`;
    this.#publish(this.#options.subjectOf(nodeId), body, number);
  }

  #publish(subject: string, body: string, number: number): void {
    try {
      this.#options.nc.publish(subject, body, { reply: `${this.#inbox}.${number}` });
    } catch (error) {
      const waiting = this.#waiting.get(number);
      this.#forget(number);
      waiting?.failed(unavailable('the cluster is out of reach', error));
    }
  }

  #forget(number: number): void {
    const waiting = this.#waiting.get(number);
    clearTimeout(waiting?.timer);
    clearTimeout(waiting?.slow);
    this.#waiting.delete(number);
  }

  #onAnswer(message: Msg): void {
    const { onIgnored } = this.#options;
    const [number = '', nodeId, more, ...rest] = message.subject.slice(this.#inbox.length + 1).split('.');
    const waiting = this.#waiting.get(Number(number));
    // Too late: nobody waits any more.
    if (waiting === undefined) return;
    if (message.headers?.code === 503) return waiting.nobody();
    if (nodeId === undefined || (more !== 'more' && more !== 'end') || rest.length > 0) {
      return onIgnored(message.subject);
    }
    const parts = waiting.parts.get(nodeId) ?? [];
    parts.push(message.data);
    if (more === 'more') {
      if (parts.length > answerPartsMax) onIgnored(message.subject);
      else waiting.parts.set(nodeId, parts);
      return;
    }
    waiting.parts.delete(nodeId);
    const answers = readAnswers(Buffer.concat(parts));
    if (answers === undefined) onIgnored(message.subject);
    else waiting.answered(nodeId, answers);
  }

  /** Never rejects. */
  async #onCommands(message: Msg, handle: CommandHandler): Promise<void> {
    const { nc, nodeId, onIgnored } = this.#options;
    const commands = readList(message.data);
    const { reply } = message;
    if (commands === undefined || reply === undefined || reply === '') return onIgnored(message.subject);
    const answers = await Promise.all(commands.map((command) => outcomeOf(handle, command)));
    const body = Buffer.from(`[${answers.join(',')}]`);
    for (let at = 0; at < body.length; at += this.#bytesMax) {
      const isLast = at + this.#bytesMax >= body.length;
      try {
        nc.publish(`${reply}.${nodeId}.${isLast ? 'end' : 'more'}`, body.subarray(at, at + this.#bytesMax));
      } catch {
        // The connection has closed for good; who asked hears that from its own.
        return;
      }
    }
  }
}
