import { createInbox, type Msg, type NatsConnection } from 'nats';
import { errorCodes, type ErrorCode } from '../protocol/codes.js';
import type { CommandHandler } from './cluster.js';
import { BrokerError, unavailable } from './errors.js';

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

/** What one node answered to one command. */
type Answer =
  { readonly ok?: unknown } | { readonly error: { readonly code: string; readonly message: string } };

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

interface Pending {
  /** The command as JSON. */
  readonly text: string;
  readonly bytes: number;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: BrokerError) => void;
}

/** Nodes that have not answered by now may be gone. */
const slowMs = 250;
const commandsPerMessageMax = 1000;
const answerPartsMax = 256;
const bytesMaxDefault = 1024 * 1024;
const nodeIdSyntax = /^[A-Za-z0-9_-]{1,128}$/;
const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Commands and their answers over NATS. A message is a JSON list of commands; it is answered by the list of their outcomes, on a subject below
 * its reply that names the node and says whether more of the text follows, as an answer may be longer than a NATS message.
 */
export class NatsCommands {
  readonly #options: NatsCommandsOptions;
  readonly #inbox = createInbox();
  readonly #waiting = new Map<number, Waiting>();
  /** Commands of this turn of the event loop, by node. */
  readonly #batches = new Map<string, Pending[]>();
  #subscriptions: { unsubscribe(): void }[] = [];
  #counter = 0;

  constructor(options: NatsCommandsOptions) {
    this.#options = options;
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
    const text = JSON.stringify(command);
    const bytes = Buffer.byteLength(text);
    return new Promise((resolve, reject) => {
      if (bytes + 2 > this.#bytesMax) {
        return reject(new BrokerError('payload_too_large', 'larger than a message between nodes may be'));
      }
      if (this.#batches.size === 0) setImmediate(() => this.#sendBatches());
      const batch = this.#batches.get(nodeId) ?? [];
      this.#batches.set(nodeId, batch);
      batch.push({ text, bytes, resolve, reject });
    });
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
    const batches = [...this.#batches.values()];
    this.#batches.clear();
    for (const { reject } of batches.flat()) reject(error);
  }

  stop(): void {
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
    this.#subscriptions = [];
    this.abandon('the node is stopping');
  }

  get #bytesMax(): number {
    return this.#options.nc.info?.max_payload ?? bytesMaxDefault;
  }

  #sendBatches(): void {
    const batches = [...this.#batches];
    this.#batches.clear();
    for (const [nodeId, commands] of batches) {
      for (const part of this.#split(commands)) this.#send(nodeId, part);
    }
  }

  /** As few messages as their greatest size allows. */
  #split(commands: readonly Pending[]): Pending[][] {
    const parts: Pending[][] = [];
    let bytes = Infinity;
    for (const command of commands) {
      const part = parts.at(-1);
      bytes += command.bytes + 1;
      if (part !== undefined && bytes <= this.#bytesMax && part.length < commandsPerMessageMax) {
        part.push(command);
      } else {
        parts.push([command]);
        bytes = command.bytes + 2;
      }
    }
    return parts;
  }

  #send(nodeId: string, commands: readonly Pending[]): void {
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
    const answers = parseList(Buffer.concat(parts));
    if (answers?.every(isAnswer) === true) waiting.answered(nodeId, answers);
    else onIgnored(message.subject);
  }

  /** Never rejects. */
  async #onCommands(message: Msg, handle: CommandHandler): Promise<void> {
    const { nc, nodeId, onIgnored } = this.#options;
    const commands = parseList(message.data);
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

/** The outcome of one command as JSON. Never rejects. */
async function outcomeOf(handle: CommandHandler, command: unknown): Promise<string> {
  try {
    return JSON.stringify({ ok: await handle(command) });
  } catch (error) {
    const code = error instanceof BrokerError ? error.code : 'internal';
    const message = error instanceof BrokerError ? error.message : 'internal error';
    return JSON.stringify({ error: { code, message } });
  }
}

function failureOf({ code, message }: { readonly code: string; readonly message: string }): BrokerError {
  return new BrokerError(isErrorCode(code) ? code : 'internal', message);
}

function isErrorCode(code: string): code is ErrorCode {
  return (errorCodes as readonly string[]).includes(code);
}

/** Undefined for anything that is not a JSON list. */
function parseList(bytes: Uint8Array): unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(utf8.decode(bytes));
    return Array.isArray(value) ? value : undefined;
  } catch {
    // Neither UTF-8 nor JSON, perhaps: the caller counts it.
    return undefined;
  }
}

function isAnswer(value: unknown): value is Answer {
  if (typeof value !== 'object' || value === null) return false;
  if (!('error' in value)) return true;
  const { error } = value;
  return (
    typeof error === 'object' &&
    error !== null &&
    'code' in error &&
    typeof error.code === 'string' &&
    'message' in error &&
    typeof error.message === 'string'
  );
}
