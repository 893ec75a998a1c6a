import type { Cluster, CommandHandler, NodeBeacon, NodeLoad } from './cluster.js';
import { unavailable } from './errors.js';

/** The cluster of a node without NATS: itself. Any other id names a node that is gone. */
export function createAloneCluster(nodeId: string, now: () => number = Date.now): Cluster {
  return new AloneCluster(nodeId, now);
}

class AloneCluster implements Cluster {
  readonly #nodeId: string;
  readonly #now: () => number;
  #describe: (() => NodeLoad) | undefined;
  #handle: CommandHandler | undefined;

  constructor(nodeId: string, now: () => number) {
    this.#nodeId = nodeId;
    this.#now = now;
  }

  async start(describe: () => NodeLoad, handle: CommandHandler): Promise<void> {
    this.#describe = describe;
    this.#handle = handle;
  }

  /** Nobody comes or goes. */
  watch(): void {
    // Nothing will ever have to be told.
  }

  nodes(): readonly NodeBeacon[] {
    if (this.#describe === undefined) return [];
    return [{ ...this.#describe(), id: this.#nodeId, seenAt: this.#now() }];
  }

  isDead(nodeId: string): boolean {
    return nodeId !== this.#nodeId;
  }

  async ask(nodeId: string, command: unknown): Promise<unknown> {
    if (nodeId !== this.#nodeId) return undefined;
    if (this.#handle === undefined) throw unavailable('the node has not started');
    return this.#handle(command);
  }

  /** What the handler throws is no answer, as in a larger cluster. */
  async askAll(command: unknown): Promise<readonly unknown[]> {
    try {
      return [await this.ask(this.#nodeId, command)];
    } catch {
      // A node that fails at a command is left out of the answers, this one too.
      return [];
    }
  }

  async stop(): Promise<void> {
    this.#handle = undefined;
  }
}
