import { isPattern } from '../protocol/topic.js';

/**
 * Finds the values of every filter (topic or pattern) that matches a topic. Exact topics cost one hash lookup whatever their
 * number; patterns are a trie over tokens, walked only when there are any. Filters must be valid (see `protocol/topic.ts`).
 * Empty branches do not stay behind.
 */
export class PatternIndex<T> {
  readonly #exact = new Map<string, Set<T>>();
  readonly #patterns: Branch<T> = { values: undefined, children: undefined };
  #size = 0;

  /** How many (filter, value) pairs it holds. */
  get size(): number {
    return this.#size;
  }

  /** Adds a value under a filter; adding the same pair again changes nothing. */
  add(filter: string, value: T): void {
    const values = isPattern(filter) ? this.#grow(filter) : this.#exactValues(filter);
    if (values.has(value)) return;
    values.add(value);
    this.#size += 1;
  }

  /** Removes a value from a filter. Returns whether it was there. */
  remove(filter: string, value: T): boolean {
    const removed = isPattern(filter) ? this.#removePattern(filter, value) : this.#removeExact(filter, value);
    if (removed) this.#size -= 1;
    return removed;
  }

  /**
   * Visits the values whose filter matches `topic`, in no particular order: a value that several matching filters hold is
   * visited once for each of them. `visit` must not change the index.
   */
  match(topic: string, visit: (value: T) => void): void {
    const exact = this.#exact.get(topic);
    if (exact !== undefined) for (const value of exact) visit(value);
    if (this.#patterns.children !== undefined) walk(this.#patterns, topic.split('.'), 0, visit);
  }

  /** How many internal records exist: 0 when nothing is held, which shows that nothing leaks. */
  get branches(): number {
    return this.#exact.size + countBelow(this.#patterns);
  }

  #exactValues(topic: string): Set<T> {
    let values = this.#exact.get(topic);
    if (values === undefined) {
      values = new Set();
      this.#exact.set(topic, values);
    }
    return values;
  }

  #grow(pattern: string): Set<T> {
    let branch = this.#patterns;
    for (const token of pattern.split('.')) {
      branch.children ??= new Map();
      let next = branch.children.get(token);
      if (next === undefined) {
        next = { values: undefined, children: undefined };
        branch.children.set(token, next);
      }
      branch = next;
    }
    branch.values ??= new Set();
    return branch.values;
  }

  #removeExact(topic: string, value: T): boolean {
    const values = this.#exact.get(topic);
    if (values?.delete(value) !== true) return false;
    if (values.size === 0) this.#exact.delete(topic);
    return true;
  }

  #removePattern(pattern: string, value: T): boolean {
    return removeBelow(this.#patterns, pattern.split('.'), 0, value);
  }
}

interface Branch<T> {
  /** Values of the pattern that ends here; undefined instead of empty. */
  values: Set<T> | undefined;
  /** By token, `*` and `>` among them (no topic has such a token); undefined instead of empty. */
  children: Map<string, Branch<T>> | undefined;
}

function walk<T>(
  branch: Branch<T>,
  tokens: readonly string[],
  depth: number,
  visit: (value: T) => void,
): void {
  const token = tokens[depth];
  if (token === undefined) {
    if (branch.values !== undefined) for (const value of branch.values) visit(value);
    return;
  }
  if (branch.children === undefined) return;
  const rest = branch.children.get('>')?.values;
  if (rest !== undefined) for (const value of rest) visit(value);
  const any = branch.children.get('*');
  if (any !== undefined) walk(any, tokens, depth + 1, visit);
  const same = branch.children.get(token);
  if (same !== undefined) walk(same, tokens, depth + 1, visit);
}

function removeBelow<T>(branch: Branch<T>, tokens: readonly string[], depth: number, value: T): boolean {
  const token = tokens[depth];
  if (token === undefined) {
    if (branch.values?.delete(value) !== true) return false;
    if (branch.values.size === 0) branch.values = undefined;
    return true;
  }
  const child = branch.children?.get(token);
  if (child === undefined || !removeBelow(child, tokens, depth + 1, value)) return false;
  if (child.values === undefined && child.children === undefined) {
    branch.children?.delete(token);
    if (branch.children?.size === 0) branch.children = undefined;
  }
  return true;
}

function countBelow<T>(branch: Branch<T>): number {
  let count = 0;
  for (const child of branch.children?.values() ?? []) count += 1 + countBelow(child);
  return count;
}
