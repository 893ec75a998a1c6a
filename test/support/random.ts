/** A small seeded generator (mulberry32), for tests that must repeat a run exactly. */
export interface Random {
  /** From 0 up to, not including, `below`. */
  int(below: number): number;
  bytes(length: number): Uint8Array;
  pick<T>(from: readonly T[]): T;
}

export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  const int = (below: number): number => Math.floor((next() / 0x1_0000_0000) * below);
  return {
    int,
    bytes: (length) => Uint8Array.from({ length }, () => int(256)),
    pick: <T>(from: readonly T[]): T => {
      const picked = from[int(from.length)];
      if (picked === undefined) throw new RangeError('nothing to pick from');
      return picked;
    },
  };
}
