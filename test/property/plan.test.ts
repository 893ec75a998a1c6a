import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { shippedCosts } from '../../bench/plan/costs.js';
import { inputSpecs, readInputs, type PlanInputs } from '../../bench/plan/inputs.js';
import { PlanImpossible } from '../../bench/plan/nodes.js';
import { makePlan, type Plan } from '../../bench/plan/plan.js';
import { positivePoisson, runQueue } from '../../bench/plan/queue.js';
import { simulate } from '../../bench/plan/simulate.js';
import { simulateStorm, stormRules, type StormOptions } from '../../bench/plan/simulate-storm.js';
import { seededRandom } from '../../bench/scenarios/zipf.js';
import { defaultBackoff, fullJitter } from '../../client/backoff.js';
import { createAdmission } from '../../node/admission.js';

const costs = shippedCosts();
const defaults = readInputs(undefined, {}).inputs;

/** Launches of all kinds, none so large that nothing would do. */
const launches: fc.Arbitrary<Partial<PlanInputs>> = fc.record({
  users: fc.integer({ min: 1, max: 20_000_000 }),
  topics: fc.integer({ min: 1, max: 200_000 }),
  topicsPerUser: fc.integer({ min: 1, max: 30 }),
  zipf: fc.double({ min: 0, max: 1.5, noNaN: true }),
  publishZipf: fc.double({ min: 0, max: 1.5, noNaN: true }),
  messagesPerS: fc.double({ min: 0, max: 2000, noNaN: true }),
  bytes: fc.integer({ min: 1, max: 5000 }),
  sessionsPerUser: fc.double({ min: 1, max: 3, noNaN: true }),
  pushesPerDay: fc.double({ min: 0, max: 1e8, noNaN: true }),
  durableShare: fc.double({ min: 0, max: 1, noNaN: true }),
  lostNodes: fc.integer({ min: 0, max: 5 }),
  nodeMemoryGb: fc.constantFrom(4, 16),
});

/** Undefined: no number of servers is enough. */
function planOf(changed: Partial<PlanInputs>): Plan | undefined {
  try {
    return makePlan({ ...defaults, ...changed }, costs);
  } catch (error) {
    if (error instanceof PlanImpossible) return undefined;
    throw error;
  }
}

describe('a plan', () => {
  const grows: Partial<Record<keyof PlanInputs, (plan: Plan) => number[]>> = {
    users: (plan) => [plan.sizing.nodes, plan.redis.masters, plan.redis.userBytes, plan.storm.sessions],
    messagesPerS: (plan) => [plan.sizing.nodes, plan.demand.deliveries, plan.nats.storedMessages],
    topicsPerUser: (plan) => [plan.sizing.nodes, plan.demand.deliveries],
    bytes: (plan) => [plan.sizing.nodes, plan.demand.frameBytes, plan.nats.diskBytes * plan.nats.servers],
    pushesPerDay: (plan) => [plan.sizing.nodes, plan.redis.masters, plan.redis.queuedBytes],
    lostNodes: (plan) => [plan.sizing.nodes],
    sessionsPerUser: (plan) => [plan.sizing.nodes, plan.redis.masters],
  };

  for (const [input, figures] of Object.entries(grows) as [keyof PlanInputs, (plan: Plan) => number[]][]) {
    it(`never needs less for more ${input}`, () => {
      fc.assert(
        fc.property(launches, fc.double({ min: 1, max: 10, noNaN: true }), (launch, factor) => {
          const less = Number({ ...defaults, ...launch }[input]);
          const isWhole = Number.isInteger(inputSpecs[input].fallback) && Number.isInteger(less);
          const more = isWhole ? Math.ceil(less * factor) : less * factor;
          const [small, large] = [planOf({ ...launch, [input]: less }), planOf({ ...launch, [input]: more })];
          // What is impossible stays so.
          if (small === undefined) expect(large).toBeUndefined();
          if (small === undefined || large === undefined) return;
          const [before, after] = [figures(small), figures(large)];
          for (const [i, value] of after.entries()) {
            expect(value, `figure ${i}`).toBeGreaterThanOrEqual((before[i] ?? 0) * (1 - 1e-9));
          }
        }),
        { numRuns: 25 },
      );
    });
  }

  it('keeps to every target that it was given', () => {
    fc.assert(
      fc.property(launches, (launch) => {
        const plan = planOf(launch);
        if (plan === undefined) return;
        const { inputs } = plan.model;
        expect(plan.load.cpuShare).toBeLessThanOrEqual(inputs.cpuTarget);
        expect(plan.loadAfterLoss.cpuShare).toBeLessThanOrEqual(inputs.lossCpuTarget);
        expect(plan.loadAfterLoss.memoryBytes).toBeLessThanOrEqual(inputs.nodeMemoryGb * 1e9);
        expect(plan.loadAfterLoss.sessions).toBeLessThanOrEqual(inputs.fileDescriptors - 100);
        expect(plan.redis.headroom).toBeGreaterThanOrEqual(inputs.redisHeadroom);
        expect(plan.redis.cpuShare).toBeLessThanOrEqual(inputs.redisCpuTarget);
        expect(plan.nats.cpuShare).toBeLessThanOrEqual(inputs.natsCpuTarget);
        expect(plan.nats.nodesPerMessage).toBeLessThanOrEqual(plan.sizing.nodes * (1 + 1e-9));
      }),
      { numRuns: 50 },
    );
  });
});

describe('the queue of a node', () => {
  const seeds = [1, 2];
  const jobs = 200_000;

  function waitsOf(
    perSec: number,
    draw: () => number,
    random: () => number,
  ): { mean: number; waits: number[]; busy: number } {
    const waits: number[] = [];
    const busy = runQueue({
      perSec,
      jobs,
      windowSec: 0,
      batchMax: 1,
      random,
      draw,
      serviceSec: ([sec = 0]) => sec,
      served: (_, waitSec) => waits.push(waitSec),
    });
    return { mean: waits.reduce((sum, wait) => sum + wait, 0) / waits.length, waits, busy };
  }

  for (const load of [0.3, 0.6, 0.8]) {
    it(`waits as M/D/1 does at a load of ${load}`, () => {
      for (const seed of seeds) {
        const { busy, mean } = waitsOf(load, () => 1, seededRandom(seed));
        // Pollaczek and Khinchin: load / (2 (1 - load)) services of a second.
        expect(mean / (load / (2 * (1 - load))), `seed ${seed}`).toBeCloseTo(1, 1);
        expect(busy, `seed ${seed}`).toBeCloseTo(load, 2);
      }
    });

    it(`waits as M/M/1 does at a load of ${load}`, () => {
      for (const seed of seeds) {
        const random = seededRandom(seed);
        const { mean, waits } = waitsOf(load, () => -Math.log(1 - random()), random);
        expect(mean / (load / (1 - load)), `seed ${seed}`).toBeCloseTo(1, 1);
        // A wait is longer than t with probability load × exp(-(1 - load) t): that of 99 % is ln(100 load) / (1 - load).
        const p99 = waits.sort((a, b) => a - b)[Math.floor(jobs * 0.99)] ?? 0;
        expect(p99 / (Math.log(100 * load) / (1 - load)), `seed ${seed}`).toBeCloseTo(1, 0.9);
      }
    });
  }

  it('lets go no more often than its window says', () => {
    let [flushes, served, longest] = [0, 0, 0];
    runQueue({
      perSec: 1000,
      jobs: 50_000,
      windowSec: 0.005,
      batchMax: Infinity,
      random: seededRandom(5),
      draw: () => 1,
      serviceSec: () => {
        flushes++;
        return 1e-6;
      },
      served: (_, waitSec) => {
        served++;
        longest = Math.max(longest, waitSec);
      },
    });
    expect(longest).toBeLessThanOrEqual(0.005 + 1e-6);
    // 50 s at most every 5 ms, and at 1,000 a second hardly ever later: the pause is 5 ms, and 1 ms until the next comes when none has gathered.
    expect(served / flushes).toBeGreaterThan(4.9);
    expect(served / flushes).toBeLessThan(5.2);
  });

  it('draws Poisson counts that are not 0', () => {
    for (const mean of [0.001, 0.5, 5, 49, 200]) {
      const random = seededRandom(9);
      let [sum, least] = [0, Infinity];
      for (let i = 0; i < 40_000; i++) {
        const count = positivePoisson(mean, random);
        least = Math.min(least, count);
        sum += count;
      }
      expect(least).toBeGreaterThanOrEqual(1);
      expect(sum / 40_000 / (mean / -Math.expm1(-mean)), `mean ${mean}`).toBeCloseTo(1, 1);
    }
  });
});

describe('a storm', () => {
  const seeds = [1, 2, 3];

  it('knows the rules of the client and the node', () => {
    expect(defaultBackoff).toEqual({ baseMs: stormRules.baseMs, maxMs: stormRules.maxMs });
    const told = (waiting: number, chance: number): number => {
      const admission = createAdmission(10, { now: () => 0, random: () => chance });
      for (let i = 1; i < waiting; i++) admission.retryAfterSec(true);
      return admission.retryAfterSec(true);
    };
    const almost = 1 - 1e-12;
    expect(told(20, almost)).toBe(stormRules.spreadSecMin);
    expect(told(10_000, almost)).toBe(stormRules.spreadSecMax);
    expect(told(200, 0)).toBe(21);
    expect(told(200, almost)).toBe(20 * (1 + stormRules.lateShareMax));
  });

  /** The same with each client on its own, and the code that clients and nodes run. */
  function oneByOne({ freePerSec, seed, sessions }: StormOptions): {
    p50Sec: number;
    p99Sec: number;
    allSec: number;
  } {
    const random = seededRandom(seed);
    let nowMs = 0;
    const admission = createAdmission(freePerSec, { now: () => nowMs, random });
    const due = Array.from({ length: sessions }, () => ({
      atMs: fullJitter(0, defaultBackoff, random),
      attempt: 1,
    }));
    const back: number[] = [];
    // Whole milliseconds, as timers have them.
    const calendar = new Map<number, typeof due>();
    const put = (client: (typeof due)[number]): void => {
      const own = calendar.get(client.atMs) ?? [];
      own.push(client);
      calendar.set(client.atMs, own);
    };
    due.forEach(put);
    for (; back.length < sessions; nowMs++) {
      for (const client of calendar.get(nowMs) ?? []) {
        if (admission.peek() && admission.take()) {
          back.push(nowMs / 1000);
          continue;
        }
        // The upgrade was refused; the client asks why.
        admission.retryAfterSec(true);
        const hintMs = admission.peek() ? 0 : admission.retryAfterSec(false) * 1000;
        client.atMs = nowMs + Math.max(1, fullJitter(client.attempt, defaultBackoff, random), hintMs);
        client.attempt++;
        put(client);
      }
      calendar.delete(nowMs);
    }
    const at = (share: number): number => back[Math.ceil(sessions * share) - 1] ?? 0;
    return { p50Sec: at(0.5), p99Sec: at(0.99), allSec: at(1) };
  }

  for (const [sessions, perSec] of [
    [20_000, 1000],
    [20_000, 200],
    [4000, 2000],
  ] as const) {
    it(`of ${sessions} at ${perSec}/s goes as one of single clients`, () => {
      for (const seed of seeds) {
        const options = { sessions, ratePerSec: perSec, freePerSec: perSec, silentPingSec: 0, seed };
        const [single, cohorts] = [oneByOne(options), simulateStorm(options)];
        for (const figure of ['p50Sec', 'p99Sec', 'allSec'] as const) {
          const difference = Math.abs((cohorts?.[figure] ?? 0) - single[figure]);
          const tolerance = 0.5 + single[figure] * 0.15;
          expect(
            difference,
            `seed ${seed}: ${figure} ${cohorts?.[figure]} for ${single[figure]}`,
          ).toBeLessThan(tolerance);
        }
      }
    });
  }

  it('brings everybody back once, never faster than the rate', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 300_000 }),
        fc.integer({ min: 20, max: 20_000 }),
        fc.integer({ min: 0, max: 1000 }),
        (sessions, perSec, seed) => {
          const storm = simulateStorm({
            sessions,
            ratePerSec: perSec,
            freePerSec: perSec,
            silentPingSec: 0,
            seed,
          });
          expect(storm?.curve.at(-1)?.back).toBe(sessions);
          expect(storm?.allSec).toBeGreaterThanOrEqual(sessions / perSec - 1);
          for (const { back, sec } of storm?.curve ?? []) {
            expect(back).toBeLessThanOrEqual(perSec * (sec + 1) + 1);
          }
        },
      ),
      { numRuns: 40 },
    );
  });

  it('begins later when lines go silent', () => {
    const options = { sessions: 1000, ratePerSec: 5000, freePerSec: 5000, seed: 1 };
    expect(simulateStorm({ ...options, silentPingSec: 0 })?.allSec).toBeLessThanOrEqual(0.6);
    const silent = simulateStorm({ ...options, silentPingSec: 30 });
    // Ten seconds without an answer to a ping that leaves within half a minute, and half a second of jitter.
    expect(silent?.curve.find(({ back }) => back > 0)?.sec).toBeGreaterThanOrEqual(10);
    expect(silent?.allSec).toBeGreaterThan(38);
    expect(silent?.allSec).toBeLessThanOrEqual(40.6);
  });

  it('says when the rate is used up by others', () => {
    expect(
      simulateStorm({ sessions: 10, ratePerSec: 100, freePerSec: 0, silentPingSec: 0, seed: 1 }),
    ).toBeUndefined();
  });
});

describe('a simulation', () => {
  it('brings back a single user', () => {
    const plan = planOf({ users: 1 });
    expect(plan && simulate(plan, 7).storm?.curve.at(-1)?.back).toBe(1);
  });

  it('is the same for the same seed, and ends for 100 M users', () => {
    const plan = planOf({ users: 100_000_000, stormShare: 1 });
    expect(plan).toBeDefined();
    if (plan === undefined) return;
    const once = simulate(plan, 7);
    expect(simulate(plan, 7)).toEqual(once);
    expect(simulate(plan, 8)).not.toEqual(once);
    expect(once.storm?.curve.at(-1)?.back).toBe(100_000_000);
    // The node is as busy as the plan says, less what is saved by messages that leave together.
    expect(once.fanout.cpuShare).toBeLessThanOrEqual(plan.load.cpuShare * 1.05);
    expect(once.fanout.cpuShare).toBeGreaterThan(plan.load.cpuShare * 0.5);
    expect(once.fanout.p99Ms).toBeGreaterThan(once.fanout.p50Ms);
  });
});
