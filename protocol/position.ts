import { failure, success, type Result } from './result.js';
import { grammarLimits } from './limits.js';

/**
 * A place in the history of a durable topic or pattern: everything up to and including `offset` was seen.
 * Offsets are stream sequences (one sequence for a whole namespace, the same on every node), so those of one
 * topic increase but are not dense. `epoch` names the incarnation of the stream.
 */
export interface Position {
  readonly epoch: string;
  readonly offset: number;
}

const positionSyntax = new RegExp(`^([A-Za-z0-9_-]{1,${grammarLimits.epochCharsMax}}):(0|[1-9][0-9]{0,15})$`);
const epochSyntax = new RegExp(`^[A-Za-z0-9_-]{1,${grammarLimits.epochCharsMax}}$`);

export function isEpoch(text: string): boolean {
  return epochSyntax.test(text);
}

/** Offsets are non-negative integers that a double holds exactly (JetStream sequences fit for 285 years at 1M/s). */
export function isOffset(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/** Reads `epoch:offset`. */
export function parsePosition(text: string): Result<Position> {
  const match = positionSyntax.exec(text);
  const offset = Number(match?.[2]);
  if (match === null || !Number.isSafeInteger(offset)) {
    return failure('invalid_topic', 'a position is epoch:offset');
  }
  return success({ epoch: match[1] ?? '', offset });
}

export function formatPosition(position: Position): string {
  return `${position.epoch}:${position.offset}`;
}
