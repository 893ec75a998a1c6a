/** Finds the number of a topic by its bytes in a frame, without making a string of them. */
export class TopicIndex {
  readonly names: readonly string[];
  readonly #bytes: readonly Buffer[];
  readonly #table: Int32Array;
  readonly #mask: number;

  constructor(names: Iterable<string>) {
    this.names = [...new Set(names)];
    this.#bytes = this.names.map((name) => Buffer.from(name));
    let size = 8;
    while (size < this.names.length * 2) size *= 2;
    this.#mask = size - 1;
    this.#table = new Int32Array(size).fill(-1);
    for (const [number, bytes] of this.#bytes.entries()) {
      let slot = hash(bytes, 0, bytes.length) & this.#mask;
      while (this.#table[slot] !== -1) slot = (slot + 1) & this.#mask;
      this.#table[slot] = number;
    }
  }

  /** @returns -1 for a topic that is not in here */
  find(bytes: Uint8Array, start: number, end: number): number {
    for (let slot = hash(bytes, start, end) & this.#mask; ; slot = (slot + 1) & this.#mask) {
      const number = this.#table[slot]!;
      if (number === -1 || same(this.#bytes[number]!, bytes, start, end)) return number;
    }
  }
}

/** FNV-1a, 32 bits. */
function hash(bytes: Uint8Array, start: number, end: number): number {
  let value = 0x811c9dc5;
  for (let i = start; i < end; i++) value = Math.imul(value ^ bytes[i]!, 0x01000193);
  return value ^ (value >>> 15);
}

function same(name: Uint8Array, bytes: Uint8Array, start: number, end: number): boolean {
  if (name.length !== end - start) return false;
  for (let i = 0; i < name.length; i++) if (name[i] !== bytes[start + i]) return false;
  return true;
}
