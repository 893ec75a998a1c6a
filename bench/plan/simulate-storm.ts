import { seededRandom } from '../scenarios/zipf.js';

/** What clients and nodes do about a storm: `client/backoff.ts`, `client/connection.ts` and `node/admission.ts` hold the same figures. */
export const stormRules = {
  baseMs: 500,
  maxMs: 30_000,
  spreadSecMin: 4,
  spreadSecMax: 60,
  /** A silent line is given up so long after a ping. */
  answerMsMax: 10_000,
  lateShareMax: 0.25,
} as const;

export interface StormOptions {
  readonly sessions: number;
  /** Connections a second that the nodes let in; of them, those that are left for the storm. */
  readonly ratePerSec: number;
  readonly freePerSec: number;
  /** 0: a cut line is noticed at once; else the time between pings of a line that went silent. */
  readonly silentPingSec: number;
  readonly seed: number;
}

export interface StormSimulation {
  /** Until so many sessions are back. */
  readonly p50Sec: number;
  readonly p90Sec: number;
  readonly p99Sec: number;
  readonly allSec: number;
  /** Times that a client was told to come back. */
  readonly refusals: number;
  readonly triesPerSecMax: number;
  /** The rate over the whole time, against what was free. */
  readonly used: number;
  readonly stepSec: number;
  readonly curve: readonly StormPoint[];
}

export interface StormPoint {
  readonly sec: number;
  /** Sessions that are back. */
  readonly back: number;
  readonly triesPerSec: number;
}

/** Refusals after which the wait is as long as it gets: 500 ms doubled six times is above 30 s. */
const attemptsMax = 6;
const stepSecMin = 0.05;
const stepSecMax = 1;
const stepsAim = 4000;
const secMax = 7 * 86_400;
const points = 300;

/**
 * Sessions that lost their nodes at one moment, in cohorts: how many try in each step, by how often they were refused before. One token bucket
 * stands for those of all nodes.
 * @returns undefined when they would not be back in a week
 */
export function simulateStorm(options: StormOptions): StormSimulation | undefined {
  const { freePerSec, ratePerSec, seed, sessions } = options;
  if (freePerSec <= 0 || sessions / freePerSec > secMax) return undefined;
  const stepSec = Math.min(stepSecMax, Math.max(stepSecMin, sessions / freePerSec / stepsAim));
  const calendar = new Calendar(stepSec, seededRandom(seed));
  calendar.cut(sessions, options.silentPingSec);
  // What others use of the rate is not there to be saved up either.
  const burst = Math.max(1, freePerSec);
  let [tokens, told, back, refusals, step] = [burst, 0, 0, 0, 0];
  const steps: StormPoint[] = [];
  while (back < sessions && step * stepSec < secMax) {
    if (step > 0) {
      tokens = Math.min(burst, tokens + freePerSec * stepSec);
      told = Math.max(0, told - ratePerSec * stepSec);
    }
    const trying = calendar.take();
    const all = trying.reduce((sum, count) => sum + count, 0);
    const admitted = Math.min(all, Math.floor(tokens));
    tokens -= admitted;
    back += admitted;
    refusals += all - admitted;
    told = calendar.refuse(without(trying, admitted), told, ratePerSec);
    steps.push({ sec: (step + 1) * stepSec, back, triesPerSec: all / stepSec });
    step++;
  }
  return summarise(steps, options, { refusals, stepSec });
}

/** Who tries when. */
class Calendar {
  readonly #stepSec: number;
  readonly #random: () => number;
  /** Of each number of refusals, those who try in each step, round and round. */
  readonly #waiting: readonly Float64Array[];
  #now = 0;

  constructor(stepSec: number, random: () => number) {
    this.#stepSec = stepSec;
    this.#random = random;
    const length = Math.ceil(horizonSec / stepSec) + 2;
    this.#waiting = Array.from({ length: attemptsMax + 1 }, () => new Float64Array(length));
  }

  /** The first wait: up to 500 ms after a cut was noticed. */
  cut(sessions: number, silentPingSec: number): void {
    const { answerMsMax, baseMs } = stormRules;
    const base = baseMs / 1000;
    const noticed = silentPingSec === 0 ? 0 : answerMsMax / 1000;
    // The sum of two even spreads is taken for one that is as long as both.
    this.#spread(0, sessions, noticed + silentPingSec + base, (sec) =>
      Math.min(1, Math.max(0, (sec - noticed) / (silentPingSec + base))),
    );
  }

  /** Those of this step, by the number of their refusals; they are gone from the calendar. */
  take(): number[] {
    const slot = this.#now++ % this.#length;
    return this.#waiting.map((cohort) => {
      const count = cohort[slot] ?? 0;
      cohort[slot] = 0;
      return count;
    });
  }

  /** @param told who were told to come back and have not had their turn by the rate @returns the same after these */
  refuse(refused: readonly number[], told: number, ratePerSec: number): number {
    const { baseMs, maxMs } = stormRules;
    for (const [attempt, count] of refused.entries()) {
      // The later of one step are told to wait longer than the first.
      const parts = Math.min(partsMax, Math.ceil(count / ratePerSec / partSec));
      for (let part = 0; part < parts; part++) {
        const own = Math.floor((count * (part + 1)) / parts) - Math.floor((count * part) / parts);
        const due = (told + own / 2) / ratePerSec;
        told += own;
        const next = Math.min(attemptsMax, attempt + 1);
        const bound = Math.min(maxMs, baseMs * 2 ** next) / 1000;
        // The later of the client's own jitter and of the node's whole seconds.
        this.#spread(
          next,
          own,
          Math.max(bound, longestHint(due)),
          (sec) => Math.min(1, sec / bound) * shareTold(due, Math.floor(sec + 1e-9)),
        );
      }
    }
    return told;
  }

  get #length(): number {
    return this.#waiting[0]?.length ?? 1;
  }

  /** @param shareBy of those who try within so many seconds */
  #spread(attempt: number, count: number, untilSec: number, shareBy: (sec: number) => number): void {
    const cohort = this.#waiting[attempt];
    if (cohort === undefined || count === 0) return;
    // Which of two steps gets the odd one is chance; the sum is exact.
    const chance = this.#random();
    let before = 0;
    const last = Math.ceil(untilSec / this.#stepSec);
    for (let step = 0; step <= last; step++) {
      const by = step === last ? 1 : shareBy((step + 1) * this.#stepSec);
      const upTo = step === last ? count : Math.min(count, Math.floor(count * by + chance));
      if (upTo > before) {
        const slot = (this.#now + step) % this.#length;
        cohort[slot] = (cohort[slot] ?? 0) + upTo - before;
        before = upTo;
      }
    }
  }
}

/** Of those refused in one step, so many seconds of the rate are told the same, as long as that makes not too many parts. */
const partSec = 0.25;
const partsMax = 40;
/** Longer than anybody waits: a minute, or an unanswered ping after the longest time between pings. */
const horizonSec = 620;

/** Of those who are due then, the share that is told to wait so many whole seconds or less. */
function shareTold(dueSec: number, seconds: number): number {
  const { lateShareMax, spreadSecMax, spreadSecMin } = stormRules;
  if (dueSec > spreadSecMax) return Math.min(1, seconds / spreadSecMax);
  if (seconds >= spreadSecMax) return 1;
  const soon = seconds / Math.min(spreadSecMin, 1 + 2 * dueSec);
  const inTurn = (seconds - dueSec) / (dueSec * lateShareMax);
  return Math.max(0, Math.min(1, soon, inTurn));
}

/** Seconds after which all who are due then have been told to come. */
function longestHint(dueSec: number): number {
  const { lateShareMax, spreadSecMax, spreadSecMin } = stormRules;
  return 1 + Math.min(spreadSecMax, Math.max(spreadSecMin, dueSec * (1 + lateShareMax)));
}

/** Everybody of a step has the same luck. */
function without(trying: readonly number[], admitted: number): number[] {
  let left = admitted;
  let all = trying.reduce((sum, count) => sum + count, 0);
  return trying.map((count) => {
    const own = all === 0 ? 0 : Math.min(count, Math.round((left * count) / all));
    left -= own;
    all -= count;
    return count - own;
  });
}

function summarise(
  steps: readonly StormPoint[],
  { freePerSec, sessions }: StormOptions,
  { refusals, stepSec }: { readonly refusals: number; readonly stepSec: number },
): StormSimulation | undefined {
  const last = steps.at(-1);
  if (last === undefined || last.back < sessions) return undefined;
  const until = (share: number): number =>
    steps.find(({ back }) => back >= share * sessions)?.sec ?? last.sec;
  const every = Math.max(1, Math.ceil(steps.length / points));
  return {
    p50Sec: until(0.5),
    p90Sec: until(0.9),
    p99Sec: until(0.99),
    allSec: last.sec,
    refusals,
    triesPerSecMax: steps.reduce((most, { triesPerSec }) => Math.max(most, triesPerSec), 0),
    used: sessions / last.sec / freePerSec,
    stepSec,
    curve: [{ sec: 0, back: 0, triesPerSec: 0 }, ...thinned(steps, every)],
  };
}

/** The tries of the steps that are left out go into those that stay. */
function thinned(steps: readonly StormPoint[], every: number): StormPoint[] {
  const kept: StormPoint[] = [];
  for (let i = 0; i < steps.length; i += every) {
    const part = steps.slice(i, i + every);
    const { back = 0, sec = 0 } = part.at(-1) ?? {};
    kept.push({
      sec,
      back,
      triesPerSec: part.reduce((sum, point) => sum + point.triesPerSec, 0) / part.length,
    });
  }
  return kept;
}
