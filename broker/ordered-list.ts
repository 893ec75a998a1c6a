/**
 * A queue of items whose numeric keys only grow: push at the end, take from the front, find by key. Pushing and taking are
 * O(1) amortised, finding is O(log n).
 */
export class OrderedList<T> {
  readonly #keyOf: (item: T) => number;
  #items: (T | undefined)[] = [];
  #start = 0;

  constructor(keyOf: (item: T) => number) {
    this.#keyOf = keyOf;
  }

  get length(): number {
    return this.#items.length - this.#start;
  }

  /** The item at an index, counted from the oldest; undefined outside of the list. */
  at(index: number): T | undefined {
    return index < 0 ? undefined : this.#items[this.#start + index];
  }

  get newest(): T | undefined {
    return this.at(this.length - 1);
  }

  push(item: T): void {
    this.#items.push(item);
  }

  /** Takes the oldest item. */
  shift(): T | undefined {
    const item = this.at(0);
    if (item === undefined) return undefined;
    this.#items[this.#start] = undefined;
    this.#start += 1;
    if (this.#start === this.#items.length || (this.#start > 64 && this.#start * 2 > this.#items.length)) {
      this.#items = this.#items.slice(this.#start);
      this.#start = 0;
    }
    return item;
  }

  /** The index of the first item whose key is greater than `key`; the length when there is none. */
  indexAfter(key: number): number {
    let low = 0;
    let high = this.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const item = this.at(middle);
      if (item !== undefined && this.#keyOf(item) <= key) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Drops every item that `keep` refuses: O(n). */
  retain(keep: (item: T) => boolean): void {
    this.#items = this.#items.filter((item) => item !== undefined && keep(item));
    this.#start = 0;
  }
}
