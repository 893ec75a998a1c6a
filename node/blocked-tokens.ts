/** Blocked tokens that are remembered at most; the one that ends first is dropped for one more. */
const blockedMax = 100_000;
const sweepEverySec = 60;

/** Tokens that must not be accepted although they verify. Each is forgotten when it would have expired anyway. */
export interface BlockedTokens {
  block(tokenId: string, expSec: number): void;
  has(tokenId: string): boolean;
  /** Those that have not ended yet. */
  all(): { readonly id: string; readonly expSec: number }[];
  readonly size: number;
}

/** @param nowSec seconds since 1970 */
export function createBlockedTokens(nowSec: () => number, max = blockedMax): BlockedTokens {
  const ends = new Map<string, number>();
  let sweptSec = nowSec();

  function sweep(): void {
    sweptSec = nowSec();
    for (const [id, expSec] of ends) {
      if (expSec <= sweptSec) ends.delete(id);
    }
  }

  function dropFirstToEnd(): void {
    let first: string | undefined;
    let firstSec = Infinity;
    for (const [id, expSec] of ends) {
      if (expSec >= firstSec && first !== undefined) continue;
      first = id;
      firstSec = expSec;
    }
    if (first !== undefined) ends.delete(first);
  }

  return {
    block(tokenId, expSec) {
      if (ends.size >= max || nowSec() - sweptSec >= sweepEverySec) sweep();
      if (expSec <= nowSec()) return;
      if (ends.size >= max && !ends.has(tokenId)) dropFirstToEnd();
      ends.set(tokenId, expSec);
    },
    has(tokenId) {
      const expSec = ends.get(tokenId);
      if (expSec === undefined) return false;
      if (expSec > nowSec()) return true;
      ends.delete(tokenId);
      return false;
    },
    all() {
      sweep();
      return [...ends].map(([id, expSec]) => ({ id, expSec }));
    },
    get size() {
      return ends.size;
    },
  };
}
