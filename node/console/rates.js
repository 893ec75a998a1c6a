/**
 * Rates out of counters that only grow. They are taken node by node: a node that goes takes its counts along, one that comes
 * begins at zero, and neither is traffic.
 */
export class Rates {
  #size;
  #read;
  #last = new Map();
  #lastMs = undefined;
  /** Per second, the oldest first. */
  values = [];

  /** @param {number} size how many are kept @param {(counters: Record<string, number>) => number} read */
  constructor(size, read) {
    this.#size = size;
    this.#read = read;
  }

  /** @param {number} nowMs @param {{ id: string, counters?: Record<string, number> }[]} nodes */
  push(nowMs, nodes) {
    const current = new Map();
    let grown = 0;
    for (const { counters, id } of nodes) {
      // A node that did not answer this time goes on from what it said last.
      const count = counters === undefined ? this.#last.get(id) : this.#read(counters);
      if (count === undefined) continue;
      current.set(id, count);
      grown += count - (this.#last.get(id) ?? count);
    }
    if (this.#lastMs !== undefined && nowMs > this.#lastMs) {
      this.values = [...this.values, (Math.max(0, grown) * 1000) / (nowMs - this.#lastMs)].slice(-this.#size);
    }
    this.#last = current;
    this.#lastMs = nowMs;
  }

  get latest() {
    return this.values.at(-1);
  }
}
