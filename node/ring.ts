import type { ChannelMessage } from './message.js';

/** Stands for the list of every ring that has none; never written to. */
const empty: ChannelMessage[] = [];

/**
 * The newest messages of one hosted durable channel, bounded in number and bytes. Most clients that come back after a short
 * absence are served from here, without a read of the stream. Empty rings cost nothing: the array is made at the first message.
 */
export class Ring {
  readonly #messagesMax: number;
  readonly #bytesMax: number;
  #items: ChannelMessage[] = empty;
  /** Index of the oldest one in `#items`: the ones before it are dropped in bulk, now and then. */
  #start = 0;
  #bytes = 0;

  constructor(messagesMax: number, bytesMax: number) {
    this.#messagesMax = messagesMax;
    this.#bytesMax = bytesMax;
  }

  get size(): number {
    return this.#items.length - this.#start;
  }

  get oldest(): ChannelMessage | undefined {
    return this.#items[this.#start];
  }

  push(message: ChannelMessage): void {
    if (this.#items === empty) this.#items = [];
    this.#items.push(message);
    this.#bytes += message.bytes;
    while (this.size > this.#messagesMax || (this.#bytes > this.#bytesMax && this.size > 0)) {
      this.#dropOldest();
    }
  }

  clear(): void {
    this.#items = empty;
    this.#start = 0;
    this.#bytes = 0;
  }

  /** The messages with a greater offset, oldest first. */
  *after(offset: number): Generator<ChannelMessage> {
    for (let i = this.#firstAfter(offset); i < this.#items.length; i++) {
      const message = this.#items[i];
      if (message !== undefined) yield message;
    }
  }

  #firstAfter(offset: number): number {
    let low = this.#start;
    let high = this.#items.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#items[middle]?.offset ?? 0) > offset) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  #dropOldest(): void {
    this.#bytes -= this.oldest?.bytes ?? 0;
    this.#start++;
    // Amortised: each element is moved at most once for each one dropped.
    if (this.#start * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#start);
      this.#start = 0;
    }
  }
}
