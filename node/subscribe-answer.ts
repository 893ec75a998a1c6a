import type { ServerFrame, SubscribedTopic } from '../protocol/frames.js';

/** Topics in one `subscribed` frame: keeps it far below what a socket may buffer. */
const topicsPerFrame = 256;

/**
 * Gathers the outcome of one request's topics into as few `subscribed` frames as possible: those that are known in the same turn
 * of the event loop share one, those that have to wait for the cluster follow in another. A topic's replay starts after
 * it was told.
 */
export class SubscribeAnswer {
  readonly #send: (frame: ServerFrame) => void;
  readonly #req: number | undefined;
  #missing: number;
  #ready: SubscribedTopic[] = [];
  #told: (() => void)[] = [];
  #scheduled = false;

  /** @param expected how many outcomes will come; when all are there they are sent at once */
  constructor(send: (frame: ServerFrame) => void, expected: number, req: number | undefined) {
    this.#send = send;
    this.#missing = expected;
    this.#req = req;
  }

  /** Resolves when the outcome has been sent. */
  add(topic: SubscribedTopic): Promise<void> {
    this.#ready.push(topic);
    this.#missing--;
    const told = new Promise<void>((resolve) => this.#told.push(resolve));
    if (this.#missing === 0) {
      this.#flush();
    } else if (!this.#scheduled) {
      this.#scheduled = true;
      setImmediate(() => this.#flush());
    }
    return told;
  }

  /** Puts a newer outcome in place of one that has not been told yet. @returns false when there is none */
  replace(topic: SubscribedTopic): boolean {
    const index = this.#ready.findIndex((ready) => ready.topic === topic.topic);
    if (index < 0) return false;
    this.#ready[index] = topic;
    return true;
  }

  /** Leaves out an outcome that has not been told yet, because the client has asked again or will, or does not want it any more. */
  withdraw(topic: string): void {
    this.#ready = this.#ready.filter((ready) => ready.topic !== topic);
  }

  #flush(): void {
    this.#scheduled = false;
    for (let i = 0; i < this.#ready.length; i += topicsPerFrame) {
      const topics = this.#ready.slice(i, i + topicsPerFrame);
      this.#send({ type: 'subscribed', ...(this.#req !== undefined && { req: this.#req }), topics });
    }
    this.#ready = [];
    const told = this.#told;
    this.#told = [];
    for (const resolve of told) resolve();
  }
}
