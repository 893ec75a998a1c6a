import type { ClientFrame } from '../protocol/frames.js';
import type { DirectHandler, DirectMessage } from './types.js';

export interface DirectHost {
  send(frame: ClientFrame): boolean;
  onThrow(thrown: unknown): void;
}

/** Acknowledgements wait this long for company, since frames a second are limited. */
const ackMs = 20;
const ackIdsMax = 1_000;
/** Messages that wait for the first handler. Beyond it they are left to the server, which keeps them. */
const heldMax = 256;
/** Handled ids that are remembered: what comes again, since its acknowledgement was lost, is only acknowledged. */
const handledMax = 10_000;

/** Direct messages: each handled once, and acknowledged when that has gone well. */
export class Direct {
  readonly #host: DirectHost;
  readonly #handlers = new Set<DirectHandler>();
  #held: DirectMessage[] = [];
  readonly #running = new Set<number>();
  readonly #handled = new Set<number>();
  #acks: number[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(host: DirectHost) {
    this.#host = host;
  }

  /** @returns ends it */
  on(handler: DirectHandler): () => void {
    const own: DirectHandler = (message) => handler(message);
    this.#handlers.add(own);
    for (const message of this.#held.splice(0)) this.receive(message);
    return () => void this.#handlers.delete(own);
  }

  receive(message: DirectMessage): void {
    const { id } = message;
    if (id !== undefined && this.#handled.has(id)) return this.#acknowledge(id);
    if (id !== undefined && this.#running.has(id)) return;
    if (this.#handlers.size === 0) {
      if (this.#held.length < heldMax) this.#held.push(message);
      return;
    }
    if (id !== undefined) this.#running.add(id);
    void this.#handle(message);
  }

  /** Sends the acknowledgements that wait; without a connection they go on waiting. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    while (this.#acks.length > 0) {
      if (!this.#host.send({ type: 'ack', ids: this.#acks.slice(0, ackIdsMax) })) return;
      this.#acks = this.#acks.slice(ackIdsMax);
    }
  }

  /** The connection is gone: what waits for a handler comes again with the next. */
  detach(): void {
    this.#held = this.#held.filter(({ id }) => id === undefined);
  }

  /** Never rejects. Of several handlers all have to do well. */
  async #handle(message: DirectMessage): Promise<void> {
    const { id } = message;
    const outcomes = await Promise.allSettled([...this.#handlers].map(async (handler) => handler(message)));
    let failed = false;
    for (const outcome of outcomes) {
      if (outcome.status === 'fulfilled') continue;
      failed = true;
      this.#host.onThrow(outcome.reason);
    }
    if (id === undefined) return;
    this.#running.delete(id);
    if (failed) return;
    this.#remember(id);
    this.#acknowledge(id);
  }

  #remember(id: number): void {
    this.#handled.add(id);
    if (this.#handled.size <= handledMax) return;
    const [oldest] = this.#handled;
    if (oldest !== undefined) this.#handled.delete(oldest);
  }

  #acknowledge(id: number): void {
    this.#acks.push(id);
    this.#timer ??= setTimeout(() => this.flush(), ackMs);
  }
}
