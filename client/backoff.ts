/** Bounds of the random wait before another connect, in milliseconds. */
export interface Backoff {
  /** The upper bound of the first wait; it doubles with each failure. */
  readonly baseMs: number;
  readonly maxMs: number;
}

export const defaultBackoff: Backoff = { baseMs: 500, maxMs: 30_000 };
const retryAfterMsMax = 3_600_000;

/**
 * Full jitter: anywhere from 0 to a bound that doubles with each failure, so that clients which lost the same node do not
 * come back together. `attempt` counts from 0. Source: "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
 */
export function fullJitter(attempt: number, { baseMs, maxMs }: Backoff, random: () => number): number {
  return Math.floor(random() * Math.min(maxMs, baseMs * 2 ** attempt));
}

/** A `Retry-After` header (seconds or an HTTP date) in milliseconds, at most an hour; undefined when it cannot be read. */
export function parseRetryAfter(header: string | null | undefined, now = Date.now()): number | undefined {
  const text = header?.trim() ?? '';
  if (text === '') return undefined;
  const wait = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now;
  return Number.isFinite(wait) ? Math.min(Math.max(0, wait), retryAfterMsMax) : undefined;
}
