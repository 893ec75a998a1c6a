/** Those of the SDK (`client/backoff.ts`), which the benches do not import: they are users of the wire. */
const backoffMs = { base: 500, max: 30_000 };

/**
 * How many may start now: so many a second, and no more than so many outstanding. What was missed because too many were outstanding is not caught up
 * with later than a tenth of a second, so that a server that was slow for a while does not meet a burst.
 */
export class Pacer {
  readonly #perMs: number;
  readonly #atOnce: number;
  readonly #allowanceMax: number;
  #allowance = 0;
  #atMs: number;

  /** @param nowMs of a clock that does not jump */
  constructor(perSec: number, atOnce: number, nowMs: number) {
    this.#perMs = perSec / 1000;
    this.#atOnce = atOnce;
    this.#allowanceMax = Math.max(1, perSec / 10);
    this.#atMs = nowMs;
  }

  /** Whole sockets that may start now; counts them as started. */
  take(nowMs: number, outstanding: number, wanted: number): number {
    this.#allowance = Math.min(
      this.#allowanceMax,
      this.#allowance + Math.max(0, nowMs - this.#atMs) * this.#perMs,
    );
    this.#atMs = nowMs;
    const count = Math.max(0, Math.min(Math.floor(this.#allowance), this.#atOnce - outstanding, wanted));
    this.#allowance -= count;
    return count;
  }
}

/**
 * As the SDK does it: a random time up to a bound that doubles with each try, and not less than the server's hint.
 * @param tries that have failed, 1 at least
 * @param hintSec 0: the server has not said
 */
export function retryDelayMs(tries: number, hintSec: number, random: () => number): number {
  const jitterMs = Math.floor(random() * Math.min(backoffMs.max, backoffMs.base * 2 ** tries));
  return Math.max(jitterMs, hintSec * 1000);
}
