import { BrokerError } from './errors.js';

/** A command that waits for its answer. */
export interface PendingCommand {
  /** The command as JSON. */
  readonly text: string;
  readonly bytes: number;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: BrokerError) => void;
}

const commandsPerMessageMax = 1000;

/** Gathers the commands of one turn of the event loop by the node that they are for, and sends them in as few messages as possible. */
export class CommandBatches {
  readonly #bytesMax: () => number;
  readonly #send: (nodeId: string, commands: readonly PendingCommand[]) => void;
  #batches = new Map<string, PendingCommand[]>();

  /** @param bytesMax what a message may hold now */
  constructor(bytesMax: () => number, send: (nodeId: string, commands: readonly PendingCommand[]) => void) {
    this.#bytesMax = bytesMax;
    this.#send = send;
  }

  /** Settles as the sender settles it. @throws BrokerError `payload_too_large` */
  add(nodeId: string, command: unknown): Promise<unknown> {
    const text = JSON.stringify(command);
    const bytes = Buffer.byteLength(text);
    return new Promise((resolve, reject) => {
      if (bytes + 2 > this.#bytesMax()) {
        return reject(new BrokerError('payload_too_large', 'larger than a message between nodes may be'));
      }
      if (this.#batches.size === 0) setImmediate(() => this.#flush());
      const batch = this.#batches.get(nodeId) ?? [];
      this.#batches.set(nodeId, batch);
      batch.push({ text, bytes, resolve, reject });
    });
  }

  /** What has not been sent yet will not be. */
  abandon(error: BrokerError): void {
    for (const { reject } of this.#take().flatMap(([, commands]) => commands)) reject(error);
  }

  #take(): [string, PendingCommand[]][] {
    const batches = [...this.#batches];
    this.#batches.clear();
    return batches;
  }

  #flush(): void {
    for (const [nodeId, commands] of this.#take()) {
      for (const part of this.#split(commands)) this.#send(nodeId, part);
    }
  }

  /** As few messages as their greatest size allows. */
  #split(commands: readonly PendingCommand[]): PendingCommand[][] {
    const bytesMax = this.#bytesMax();
    const parts: PendingCommand[][] = [];
    let bytes = Infinity;
    for (const command of commands) {
      const part = parts.at(-1);
      bytes += command.bytes + 1;
      if (part !== undefined && bytes <= bytesMax && part.length < commandsPerMessageMax) {
        part.push(command);
      } else {
        parts.push([command]);
        bytes = command.bytes + 2;
      }
    }
    return parts;
  }
}
