import { readGrants, type Grants } from './grants.js';

/** Claims kept, and the longest that is: together they stay below a megabyte. */
const claimsMax = 500;
const claimCharsMax = 1000;

/**
 * Reads `can` claims, those that say the same into the same object: the tokens of an application grant most of its users the same, and a node has
 * hundreds of thousands of sessions, for each of which the sets of a grant of its own would take more room than the session does.
 */
export class GrantsCache {
  readonly #byClaim = new Map<string, Grants>();

  /** See `readGrants`. */
  read(can: unknown, topics: readonly string[]): Grants {
    // Topics of a token are its user's own.
    const claim = topics.length > 0 ? undefined : JSON.stringify(can ?? null);
    if (claim === undefined || claim.length > claimCharsMax) return readGrants(can, topics);
    let grants = this.#byClaim.get(claim);
    if (grants === undefined) {
      grants = readGrants(can);
      // Claims that differ from user to user would otherwise gather for ever.
      if (this.#byClaim.size >= claimsMax) this.#byClaim.clear();
      this.#byClaim.set(claim, grants);
    }
    return grants;
  }
}
