import { setTimeout as delay } from 'node:timers/promises';
import type { Fleet } from '../fleet/fleet.js';
import type { FleetState } from '../fleet/fleet-state.js';
import { cpuSecondsOf } from '../fleet/usage.js';

const pollMs = 100;
/** CPU is counted in hundredths of a second. */
const quietSec = 1;
const quietSecMax = 30;

/** @throws AbortError when the signal is aborted */
export async function pause(seconds: number, signal?: AbortSignal): Promise<void> {
  await delay(seconds * 1000, undefined, signal === undefined ? {} : { signal });
}

/** Waits for a state of the sockets, for so many seconds at most. @returns the last state that was looked at */
export async function untilState(
  fleet: Pick<Fleet, 'state'>,
  isReached: (state: FleetState) => boolean,
  secondsMax: number,
  signal?: AbortSignal,
): Promise<FleetState> {
  const until = performance.now() + secondsMax * 1000;
  for (;;) {
    const state = await fleet.state();
    if (isReached(state) || performance.now() > until) return state;
    await pause(pollMs / 1000, signal);
  }
}

/** Waits until processes use less than a twentieth of a core each. @throws Error when they have not come to rest after half a minute */
export async function untilQuiet(pids: readonly number[], signal?: AbortSignal): Promise<void> {
  let used = pids.map(cpuSecondsOf);
  for (let waited = 0; waited < quietSecMax; waited += quietSec) {
    await pause(quietSec, signal);
    const now = pids.map(cpuSecondsOf);
    if (now.every((sec, i) => sec - (used[i] ?? 0) < quietSec / 20)) return;
    used = now;
  }
  throw new Error(`the servers are still busy after ${quietSecMax} s`);
}

/** Of a value that is called steady: what it may move within the time. */
const steadyShare = 0.005;
const steadySecMax = 180;

/**
 * Waits until a value has moved by less than a two-hundredth for so many seconds. @returns the last one
 * @throws Error when it has not after three minutes
 */
export async function untilSteady(
  read: () => number,
  seconds: number,
  signal?: AbortSignal,
  { secondsMax = steadySecMax, stepSec = 0.5 } = {},
): Promise<number> {
  const readings: number[] = [];
  const wanted = Math.ceil(seconds / stepSec) + 1;
  for (let waited = 0; ; waited += stepSec) {
    readings.push(read());
    const last = readings.slice(-wanted);
    const [min, max] = [Math.min(...last), Math.max(...last)];
    if (last.length === wanted && max - min <= max * steadyShare) return last.at(-1) ?? max;
    if (waited >= secondsMax) throw new Error(`memory is not steady for ${seconds} s within ${secondsMax} s`);
    await pause(stepSec, signal);
  }
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
