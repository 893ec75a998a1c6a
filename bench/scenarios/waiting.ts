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

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
