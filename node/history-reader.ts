import { historyPageMessagesMax, type HistoryPage } from '../broker/bus.js';

/** What is read. */
export interface HistorySource {
  /** A page after `after` that may begin as early as `from`. @throws what the bus throws */
  readHistory(after: number, limit: number, from: number): Promise<HistoryPage>;
}

/** How long a page is kept after it last served somebody. */
const keptMsMax = 2000;

/**
 * Reads of one channel's history, shared: who comes while a read runs waits for it, all others wait for one further read from the smallest
 * offset among them, and the last page is kept for a moment. Who needs an earlier one makes the next read begin a good deal earlier still, so
 * however many clients come back, and at whatever positions, the stream sees two reads as long as a page holds them.
 */
export class HistoryReader {
  readonly #source: HistorySource;
  #running: SharedRead | undefined;
  #waiting: SharedRead | undefined;
  #kept: KeptPage | undefined;
  #keptTimer: NodeJS.Timeout | undefined;

  constructor(source: HistorySource) {
    this.#source = source;
  }

  /**
   * A page of messages after `after`. It may begin with older messages, which the caller skips, but `complete` holds for `after`.
   * It may end before what has been stored since the question, but then it leads on from `after`; one that does not was read after the question.
   * @throws what the bus throws
   */
  async read(after: number): Promise<HistoryPage> {
    if (this.#kept?.serves(after) === true) {
      this.#keptTimer?.refresh();
      return judged(this.#kept.page, after);
    }
    let reach = true;
    for (let isFirst = true; ; isFirst = false) {
      const read = this.#join(after, reach);
      // Whatever runs after that one has been started since the question.
      const isOlder = isFirst && read.started;
      const page = await read.promise;
      const leadsOn = page.upTo > after;
      const serves = isJudged(page, after) || read.after === after;
      if (serves && (leadsOn || !(page.more || isOlder))) return judged(page, after);
      reach = leadsOn;
    }
  }

  /** What was read does not count any more. */
  forget(): void {
    clearTimeout(this.#keptTimer);
    this.#kept = undefined;
    // Those under way belong to what was before: they are answered, and not kept.
    for (const read of [this.#running, this.#waiting]) if (read !== undefined) read.isForgotten = true;
  }

  #join(after: number, reach: boolean): SharedRead {
    if (this.#running === undefined) {
      const read = new SharedRead(after, reach);
      this.#run(read);
      return read;
    }
    if (this.#running.from <= after && !this.#running.isForgotten) return this.#running;
    if (this.#running.started) {
      this.#waiting ??= new SharedRead(after, reach);
      this.#waiting.include(after, reach);
      return this.#waiting;
    }
    this.#running.include(after, reach);
    return this.#running;
  }

  #run(read: SharedRead): void {
    this.#running = read;
    // Callers of the same tick still join: a burst of resuming clients is one read.
    queueMicrotask(() => {
      read.started = true;
      if (read.reach && this.#kept !== undefined) read.from = this.#kept.reachBack(read.after);
      this.#source.readHistory(read.after, historyPageMessagesMax, read.from).then(
        (page) => {
          if (!read.isForgotten) this.#keep(read.from, page);
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

  /** Only what goes to the end: from there the node's own copy leads on. */
  #keep(from: number, page: HistoryPage): void {
    if (page.more) return;
    this.#kept = new KeptPage(from, page);
    clearTimeout(this.#keptTimer);
    this.#keptTimer = setTimeout(() => (this.#kept = undefined), keptMsMax).unref();
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
  /** Where the page begins. */
  from: number;
  /** Whether it may begin earlier than anybody has asked for. */
  reach: boolean;
  /** The request has left: what is stored from now on may be missing from its page. */
  started = false;
  isForgotten = false;
  readonly promise: Promise<HistoryPage>;
  resolve!: (page: HistoryPage) => void;
  reject!: (error: unknown) => void;

  constructor(after: number, reach: boolean) {
    this.after = after;
    this.from = after;
    this.reach = reach;
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  include(after: number, reach: boolean): void {
    this.after = Math.min(this.after, after);
    this.from = this.after;
    this.reach &&= reach;
  }
}

class KeptPage {
  readonly from: number;
  readonly page: HistoryPage;

  constructor(from: number, page: HistoryPage) {
    this.from = from;
    this.page = page;
  }

  serves(after: number): boolean {
    return after >= this.from && after < this.page.upTo && isJudged(this.page, after);
  }

  /** So far back from its end that half a page should hold it, going by how close together its messages are. */
  reachBack(after: number): number {
    const { messages, upTo } = this.page;
    const distance = (upTo - this.from) / Math.max(1, messages.length);
    return Math.min(after, Math.max(0, Math.floor(upTo - (distance * historyPageMessagesMax) / 2)));
  }
}

/** Whether the page tells of this offset whether something after it has been dropped. */
function isJudged(page: HistoryPage, after: number): boolean {
  return after >= page.completeAfter || after <= page.lostUpTo;
}

function judged(page: HistoryPage, after: number): HistoryPage {
  const complete = after >= page.completeAfter;
  return complete === page.complete ? page : { ...page, complete };
}
