/**
 * Remembers where messages with an id were stored, for a window of time and up to a number of them; beyond that the
 * oldest are forgotten, so that no publisher can fill the memory.
 */
export class RecentIds {
  readonly #windowMs: number;
  readonly #countMax: number;
  /** In the order of their time, since each key is added once: the front is the oldest. */
  readonly #seen = new Map<string, { readonly offset: number; readonly at: number }>();

  constructor(windowMs: number, countMax: number) {
    this.#windowMs = windowMs;
    this.#countMax = countMax;
  }

  get size(): number {
    return this.#seen.size;
  }

  /** The offset that was added for a key within the window before `now` (ms). */
  find(key: string, now: number): number | undefined {
    this.trim(now);
    return this.#seen.get(key)?.offset;
  }

  add(key: string, offset: number, now: number): void {
    this.#seen.set(key, { offset, at: now });
    this.trim(now);
  }

  trim(now: number): void {
    for (const [key, { at }] of this.#seen) {
      if (this.#seen.size <= this.#countMax && now - at < this.#windowMs) return;
      this.#seen.delete(key);
    }
  }
}
