/** Bounds of the wait before another connect. */
export const backoffMs = { base: 500, max: 30_000 } as const;

/**
 * Full jitter: anywhere from 0 to an upper bound that doubles with each failed attempt, so that clients which
 * lost the same node do not come back together. `attempt` counts from 0. Milliseconds.
 * Source: "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
 */
export function fullJitter(attempt: number, random: () => number = Math.random): number {
  return Math.floor(random() * Math.min(backoffMs.max, backoffMs.base * 2 ** attempt));
}

/**
 * A `Retry-After` header in milliseconds: seconds or an HTTP date. Undefined when there is none or it cannot be
 * read; at most an hour.
 */
export function parseRetryAfter(header: string | null | undefined, nowMs = Date.now()): number | undefined {
  if (header === null || header === undefined || header.trim() === '') return undefined;
  const wait = /^\d+$/.test(header.trim()) ? Number(header) * 1000 : Date.parse(header) - nowMs;
  return Number.isFinite(wait) ? Math.min(Math.max(0, wait), 3_600_000) : undefined;
}
