/** Something that holds messages back and can be told to let them go. */
export interface Flushable {
  flush(): void;
}

/**
 * Decides when held messages leave. On an idle node at the end of the current turn of the event loop, so a lone message waits for
 * nothing; on a busy one at most once in `windowMs`, so that µWS can write what gathered with one system call per
 * socket (1.9 µs a delivery alone, 0.65 µs in tens).
 */
export class Batcher {
  readonly #windowMs: number;
  readonly #now: () => number;
  #dirty: Flushable[] = [];
  #scheduled = false;
  #flushedAt = 0;

  constructor(windowMs: number, now: () => number = () => performance.now()) {
    this.#windowMs = windowMs;
    this.#now = now;
  }

  add(item: Flushable): void {
    this.#dirty.push(item);
    if (this.#scheduled) return;
    this.#scheduled = true;
    const wait = this.#windowMs - (this.#now() - this.#flushedAt);
    if (wait <= 0) setImmediate(this.#flush);
    else setTimeout(this.#flush, wait);
  }

  readonly #flush = (): void => {
    const dirty = this.#dirty;
    this.#dirty = [];
    this.#scheduled = false;
    this.#flushedAt = this.#now();
    for (const item of dirty) item.flush();
  };
}
