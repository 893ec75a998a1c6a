/**
 * How many new connections a node lets in. A token bucket that holds one second's worth, so that a storm after a pause is not let
 * through at once; the rate is this node's share and changes as nodes come and go.
 */
export interface Admission {
  /** Whether one more would be let in now. Takes nothing: asked before the token is verified, which costs CPU. */
  peek(): boolean;
  /** Lets one in, if there is room. */
  take(): boolean;
  /** Connections a second from now on; greater than 0, fractions allowed. */
  setRate(perSec: number): void;
  /**
   * In how many whole seconds the one that is being turned away should come back: jittered, at least 1. Calling it counts as having told
   * somebody: the more are waiting, the longer they are spread out.
   */
  retryAfterSec(): number;
}

export interface AdmissionOptions {
  /** Milliseconds on a clock that does not jump. */
  readonly now?: () => number;
  /** In [0, 1). */
  readonly random?: () => number;
}

/** Even a few are spread over some seconds, and nobody is sent away for longer than a minute. */
const spreadSecMin = 4;
const spreadSecMax = 60;

/** @param ratePerSec greater than 0 */
export function createAdmission(ratePerSec: number, options: AdmissionOptions = {}): Admission {
  const { now = () => performance.now(), random = Math.random } = options;
  let rate = ratePerSec;
  let tokens = burst();
  /** Those told to come back that the rate has not had time for yet. */
  let waiting = 0;
  let atMs = now();

  /** At least one, or a rate below one a second would never let anybody in. */
  function burst(): number {
    return Math.max(1, rate);
  }

  function refill(): void {
    const ms = now();
    const earned = (Math.max(0, ms - atMs) / 1000) * rate;
    atMs = ms;
    tokens = Math.min(burst(), tokens + earned);
    waiting = Math.max(0, waiting - earned);
  }

  return {
    peek() {
      refill();
      return tokens >= 1;
    },
    take() {
      refill();
      if (tokens < 1) return false;
      tokens -= 1;
      return true;
    },
    setRate(perSec) {
      refill();
      rate = perSec;
      tokens = Math.min(burst(), tokens);
    },
    retryAfterSec() {
      refill();
      waiting += 1;
      // Twice what the waiting ones need: newcomers want their share of the rate as well.
      const spreadSec = Math.min(spreadSecMax, Math.max(spreadSecMin, (2 * waiting) / rate));
      return 1 + Math.floor(random() * spreadSec);
    },
  };
}
