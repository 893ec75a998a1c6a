/** What the limiter keeps per connection: one number, in the connection's own state. Starts as 0. */
export interface FrameRate {
  /** The time, in milliseconds, at which the frames so far would have come at the sustained rate. */
  frameDueMs: number;
}

/**
 * Limits the frames of one connection: `perSec` sustained, `burst` at once (a leaky bucket in its one-number form, GCRA).
 * One limiter serves all connections.
 */
export interface FrameLimiter {
  /** Counts one frame, and says whether it is within the limits. A refused one does not count. */
  allow(state: FrameRate, nowMs: number): boolean;
}

export function createFrameLimiter(perSec: number, burst: number): FrameLimiter {
  const eachMs = 1000 / perSec;
  // Half a frame of slack, so that rounding never costs the last frame of a burst.
  const aheadMs = (burst - 0.5) * eachMs;
  return {
    allow(state, nowMs) {
      const dueMs = Math.max(state.frameDueMs, nowMs);
      if (dueMs - nowMs > aheadMs) return false;
      state.frameDueMs = dueMs + eachMs;
      return true;
    },
  };
}
