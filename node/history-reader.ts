import { historyPageMessagesMax, type HistoryPage } from '../broker/bus.js';

/**
 * Reads of one channel's history, shared: while a read runs, callers that it serves wait for it, and all others wait for one further
 * read from the smallest offset among them. However many clients come back at once, the stream sees two reads.
 */
export class HistoryReader {
  readonly #fetch: (after: number, limit: number) => Promise<HistoryPage>;
  #running: SharedRead | undefined;
  #waiting: SharedRead | undefined;

  constructor(fetch: (after: number, limit: number) => Promise<HistoryPage>) {
    this.#fetch = fetch;
  }

  /**
   * A page of messages after `after`. It may begin with older messages, which the caller skips, but `complete` holds for `after`.
   * @throws what the bus throws
   */
  async read(after: number): Promise<HistoryPage> {
    for (;;) {
      const read = this.#join(after);
      const page = await read.promise;
      // A shared page that began earlier may be incomplete for that earlier offset only; and it may end before ours.
      const serves = page.complete || read.after === after;
      if (serves && (page.upTo > after || !page.more)) return page;
    }
  }

  #join(after: number): SharedRead {
    if (this.#running === undefined) {
      const read = new SharedRead(after);
      this.#run(read);
      return read;
    }
    if (this.#running.after <= after && !this.#running.started) return this.#running;
    this.#waiting ??= new SharedRead(after);
    this.#waiting.after = Math.min(this.#waiting.after, after);
    return this.#waiting;
  }

  #run(read: SharedRead): void {
    this.#running = read;
    // Callers of the same tick still join: a burst of resuming clients is one read.
    queueMicrotask(() => {
      read.started = true;
      this.#fetch(read.after, historyPageMessagesMax).then(
        (page) => {
          this.#next();
          read.resolve(page);
        },
        (error: unknown) => {
          this.#next();
          read.reject(error);
        },
      );
    });
  }

  #next(): void {
    const next = this.#waiting;
    this.#running = undefined;
    this.#waiting = undefined;
    if (next !== undefined) this.#run(next);
  }
}

class SharedRead {
  after: number;
  /** The request has left: what is stored from now on may be missing from its page. */
  started = false;
  readonly promise: Promise<HistoryPage>;
  resolve!: (page: HistoryPage) => void;
  reject!: (error: unknown) => void;

  constructor(after: number) {
    this.after = after;
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }
}
