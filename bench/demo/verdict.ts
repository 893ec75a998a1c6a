import type { Alignment } from './sequence.js';

export const codecs = ['json', 'msgpack'] as const;
export type CodecName = (typeof codecs)[number];
export const kinds = ['durable', 'live', 'direct'] as const;
export type Kind = (typeof kinds)[number];

export interface Counts {
  /** What must arrive; for live topics `expectedMost` adds what may. */
  expected: number;
  expectedMost: number;
  received: number;
  lost: number;
  twice: number;
  outOfOrder: number;
  /** Arrived though never owed: a topic that the user did not ask for, or data that was not published there. */
  foreign: number;
}

export interface Verdict {
  readonly ok: boolean;
  readonly counts: Readonly<Record<Kind, Readonly<Record<CodecName, Counts>>>>;
  /** Direct messages that came again because their acknowledgement was cut off. */
  readonly redelivered: number;
  /** A line for each user and topic that is not as it should be. */
  readonly faults: readonly string[];
}

export function noCounts(): Counts {
  return { expected: 0, expectedMost: 0, received: 0, lost: 0, twice: 0, outOfOrder: 0, foreign: 0 };
}

/** The counts of one sequence, of which `mayMiss` messages were not certain to arrive. */
export function tally(expectedMost: number, mayMiss: number, found: Alignment): Counts {
  return {
    expected: expectedMost - mayMiss,
    expectedMost,
    received: found.inOrder + found.outOfOrder,
    lost: found.lost,
    twice: found.twice,
    outOfOrder: found.outOfOrder,
    foreign: found.foreign,
  };
}

export function add(into: Counts, more: Counts): void {
  into.expected += more.expected;
  into.expectedMost += more.expectedMost;
  into.received += more.received;
  into.lost += more.lost;
  into.twice += more.twice;
  into.outOfOrder += more.outOfOrder;
  into.foreign += more.foreign;
}

/** Both codecs of a kind together. */
export function sum(byCodec: Readonly<Record<CodecName, Counts>>): Counts {
  const total = noCounts();
  for (const codec of codecs) add(total, byCodec[codec]);
  return total;
}

export function isFault(counts: Counts): boolean {
  return counts.lost + counts.twice + counts.outOfOrder + counts.foreign > 0;
}

export function describe(counts: Counts): string {
  const parts: string[] = [];
  if (counts.lost > 0) parts.push(`${counts.lost} lost of ${counts.expected}`);
  if (counts.twice > 0) parts.push(`${counts.twice} twice`);
  if (counts.outOfOrder > 0) parts.push(`${counts.outOfOrder} out of order`);
  if (counts.foreign > 0) parts.push(`${counts.foreign} never owed`);
  return parts.join(', ');
}
