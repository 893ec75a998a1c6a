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
   * In how many whole seconds the one that is being turned away should come back: about when its turn is, jittered, at least 1.
   * @param isAnother whether somebody is turned away who was not waiting yet. Not so for a client that only asks why it was: browsers do not show that.
   */
  retryAfterSec(isAnother: boolean): number;
}

export interface AdmissionOptions {
  /** Milliseconds on a clock that does not jump. */
  readonly now?: () => number;
  /** In [0, 1). */
  readonly random?: () => number;
}

/** Of those whose turn is soon, the widest spread. */
const spreadSecMin = 4;
/** Nobody is sent away for longer: the queue is a guess, as nodes come and clients go. */
const spreadSecMax = 60;
/** By how much of its time somebody may come late. */
const lateShareMax = 0.25;

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
    retryAfterSec(isAnother) {
      refill();
      if (isAnother) waiting += 1;
      return 1 + Math.floor(waitSec(waiting / rate, random()));
    },
  };
}

/**
 * As in a queue: whoever comes when the rate has had time for all before it finds room, and the rate is used in full. (Spread evenly over twice the time
 * that all need, with no order, all are in after twice that time.) Newcomers take the place of some, who then wait once more.
 * @param dueSec when the rate will have let in all that wait
 * @param chance in [0, 1)
 */
function waitSec(dueSec: number, chance: number): number {
  if (dueSec > spreadSecMax) return chance * spreadSecMax;
  // A few would all be due in the next second.
  const soon = chance * Math.min(spreadSecMin, 1 + 2 * dueSec);
  return Math.min(spreadSecMax - 1, Math.max(soon, dueSec * (1 + chance * lateShareMax)));
}
