/** How a received sequence compares with the one that was owed. All are counts of messages. */
export interface Alignment {
  /** Received in their order. */
  readonly inOrder: number;
  /** Received, but before or after their place. */
  readonly outOfOrder: number;
  /** Owed for certain and not received. */
  readonly lost: number;
  /** Received more often than owed. */
  readonly twice: number;
  /** Received and never owed. */
  readonly foreign: number;
}

/**
 * Compares two sequences of values, in which the same value may occur several times. What is in order is the
 * longest common subsequence, so one misplaced message counts as one, whatever stands around it.
 *
 * @param mayMiss positions of `expected` that need not be received (they still have their place when they are).
 *   Where equal values compete, the certain ones are matched first.
 */
export function align(
  expected: readonly number[],
  received: readonly number[],
  mayMiss: ReadonlySet<number> = new Set(),
): Alignment {
  if (same(expected, received)) {
    return { inOrder: expected.length, outOfOrder: 0, lost: 0, twice: 0, foreign: 0 };
  }
  const { matchedExpected, matchedReceived } = longestCommon(expected, received, mayMiss);
  const missing = new Map<number, number[]>();
  for (const [i, value] of expected.entries()) {
    if (matchedExpected.has(i)) continue;
    missing.set(value, [...(missing.get(value) ?? []), i]);
  }
  const owed = new Set(expected);
  let outOfOrder = 0;
  let twice = 0;
  let foreign = 0;
  for (const [i, value] of received.entries()) {
    if (matchedReceived.has(i)) continue;
    const places = missing.get(value);
    if (places !== undefined && places.length > 0) {
      const certain = places.findIndex((place) => !mayMiss.has(place));
      places.splice(Math.max(certain, 0), 1);
      outOfOrder++;
    } else if (owed.has(value)) twice++;
    else foreign++;
  }
  const lost = [...missing.values()].flat().filter((place) => !mayMiss.has(place)).length;
  return { inOrder: matchedExpected.size, outOfOrder, lost, twice, foreign };
}

function same(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((value, i) => value === b[i]);
}

interface Matched {
  readonly matchedExpected: ReadonlySet<number>;
  readonly matchedReceived: ReadonlySet<number>;
}

/** Longest common subsequence; among the longest, one with the most positions that may not miss. */
function longestCommon(
  expected: readonly number[],
  received: readonly number[],
  mayMiss: ReadonlySet<number>,
): Matched {
  const rows = expected.length;
  const columns = received.length;
  const width = columns + 1;
  // One more match always outweighs any number of better ones: a match is rows + 1, a certain one 1 more.
  const weight = (i: number) => rows + 1 + (mayMiss.has(i) ? 0 : 1);
  const best = new Float64Array((rows + 1) * width);
  const at = (i: number, j: number) => best[i * width + j] ?? 0;
  for (let i = rows - 1; i >= 0; i--) {
    for (let j = columns - 1; j >= 0; j--) {
      const skip = Math.max(at(i + 1, j), at(i, j + 1));
      const take = expected[i] === received[j] ? at(i + 1, j + 1) + weight(i) : 0;
      best[i * width + j] = Math.max(skip, take);
    }
  }
  const matchedExpected = new Set<number>();
  const matchedReceived = new Set<number>();
  for (let i = 0, j = 0; i < rows && j < columns;) {
    if (expected[i] === received[j] && at(i, j) === at(i + 1, j + 1) + weight(i)) {
      matchedExpected.add(i++);
      matchedReceived.add(j++);
    } else if (at(i + 1, j) >= at(i, j + 1)) i++;
    else j++;
  }
  return { matchedExpected, matchedReceived };
}
