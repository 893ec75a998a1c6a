import type { Violation } from './oracle.js';
import { runSchedule } from './schedule.js';

export interface Failure {
  /** Of the one schedule: `TOPICAST_TEST_SCHEDULE=<seed>` runs it alone. */
  readonly seed: number;
  readonly violations: readonly Violation[];
}

export interface Found {
  /** How many were run. */
  readonly schedules: number;
  /** At most a few, to be readable. */
  readonly failures: readonly Failure[];
  /** How many schedules had a violation. */
  readonly failed: number;
  readonly messages: number;
  readonly received: number;
  readonly resyncs: number;
  readonly repaired: number;
  readonly summary: string;
}

const failuresShown = 5;

/** `TOPICAST_TEST_SEED`, or one that differs each time. */
export function schedulesSeed(): number {
  const text = process.env['TOPICAST_TEST_SEED'];
  return text === undefined ? Math.floor(Math.random() * 0x1_0000_0000) : Number(text);
}

/**
 * Runs schedules one after another, each with a seed of its own that follows from the first.
 * @param failedMax ends when so many have failed
 */
export async function runSchedules(seed: number, count: number, failedMax = count): Promise<Found> {
  const alone = process.env['TOPICAST_TEST_SCHEDULE'];
  const seeds =
    alone === undefined
      ? Array.from({ length: count }, (_, i) => Math.imul(seed + i, 0x9e3779b1) >>> 0)
      : [Number(alone)];
  const failures: Failure[] = [];
  const kinds = new Map<string, number>();
  let [failed, messages, received, resyncs, repaired] = [0, 0, 0, 0, 0];
  let run = 0;
  for (const own of seeds) {
    if (failed >= failedMax) break;
    run++;
    const outcome = await runSchedule(own);
    messages += outcome.messages;
    received += outcome.received;
    resyncs += outcome.resyncs;
    repaired += outcome.repaired;
    if (outcome.violations.length === 0) continue;
    failed++;
    for (const { kind } of outcome.violations) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    if (failures.length < failuresShown) {
      failures.push({ seed: own, violations: outcome.violations.slice(0, failuresShown) });
    }
  }
  const summary =
    `TOPICAST_TEST_SEED=${seed}: ${failed} of ${run} schedules failed (${JSON.stringify(Object.fromEntries(kinds))}); ` +
    `${messages} messages, ${received} frames received, ${resyncs} resyncs, ${repaired} repaired; ` +
    `run one alone with TOPICAST_TEST_SCHEDULE=<its seed>`;
  return { schedules: run, failures, failed, messages, received, resyncs, repaired, summary };
}
