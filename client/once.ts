import type { Message } from './types.js';

/** Topics whose last offset is remembered, the least recently used going first. */
const topicsMax = 10_000;

/**
 * Lets each durable message through once, whatever number of overlapping topics brought it. It relies on the messages of one topic
 * coming in order. `forget` when a namespace counts anew.
 */
export class Once {
  readonly #last = new Map<string, number>();

  /** Whether the message is new. */
  take({ topic, offset }: Message): boolean {
    if (offset === undefined) return true;
    const last = this.#last.get(topic);
    if (last !== undefined && offset <= last) return false;
    this.#last.delete(topic);
    this.#last.set(topic, offset);
    if (this.#last.size > topicsMax) {
      const [oldest] = this.#last.keys();
      if (oldest !== undefined) this.#last.delete(oldest);
    }
    return true;
  }

  forget(): void {
    this.#last.clear();
  }
}
