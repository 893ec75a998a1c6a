/** The real one, kept before any test replaces it: it is how a schedule lets every promise that can settle do so. */
const realSetImmediate = globalThis.setImmediate;

interface Timer {
  readonly id: number;
  readonly at: number;
  readonly run: () => void;
}

/** What the code under test gets from `setTimeout`. */
interface TimerHandle {
  readonly id: number;
  unref(): TimerHandle;
}

type Callback = (...args: unknown[]) => void;

/** Resolves when every microtask that was due, and all that these caused, have run. */
export function settle(): Promise<void> {
  return new Promise((resolve) => realSetImmediate(resolve));
}

/** Timers that move only when the schedule says so. */
export class ModelClock {
  now = 0;
  #ids = 0;
  #timers: Timer[] = [];
  #immediates: (() => void)[] = [];

  readonly setTimeout = (run: Callback, ms = 0, ...args: unknown[]): TimerHandle => {
    const id = ++this.#ids;
    this.#timers.push({ id, at: this.now + ms, run: () => run(...args) });
    const handle = { id, unref: () => handle };
    return handle;
  };

  readonly clearTimeout = (handle: TimerHandle | undefined): void => {
    if (handle !== undefined) this.#timers = this.#timers.filter((timer) => timer.id !== handle.id);
  };

  readonly setImmediate = (run: Callback, ...args: unknown[]): void => {
    this.#immediates.push(() => run(...args));
  };

  get hasImmediates(): boolean {
    return this.#immediates.length > 0;
  }

  get hasTimers(): boolean {
    return this.#timers.length > 0;
  }

  /** The end of a turn of the event loop. */
  runImmediates(): void {
    const due = this.#immediates;
    this.#immediates = [];
    for (const run of due) run();
  }

  /** Lets time pass, with promises settling between one timer and the next. */
  async advance(ms: number): Promise<void> {
    const until = this.now + ms;
    for (let next = this.#nextBy(until); next !== undefined; next = this.#nextBy(until)) {
      const { at, id, run } = next;
      this.#timers = this.#timers.filter((timer) => timer.id !== id);
      this.now = Math.max(this.now, at);
      run();
      await settle();
    }
    this.now = until;
  }

  #nextBy(until: number): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.at <= until && (next === undefined || timer.at < next.at)) next = timer;
    }
    return next;
  }
}

/**
 * Puts a clock and a source of randomness in place of the global ones while `work` runs. The test runner keeps its own references to
 * the real timers.
 */
export async function withClock<T>(
  clock: ModelClock,
  random: () => number,
  work: () => Promise<T>,
): Promise<T> {
  const kept = {
    setTimeout: globalThis.setTimeout,
    clearTimeout: globalThis.clearTimeout,
    setImmediate: globalThis.setImmediate,
  };
  const keptRandom = Math.random;
  const { clearTimeout, setImmediate, setTimeout } = clock;
  Object.assign(globalThis, { setTimeout, clearTimeout, setImmediate });
  Math.random = random;
  try {
    return await work();
  } finally {
    Object.assign(globalThis, kept);
    Math.random = keptRandom;
  }
}
