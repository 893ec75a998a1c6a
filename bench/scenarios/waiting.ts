import { setTimeout as delay } from 'node:timers/promises';
import type { Fleet } from '../fleet/fleet.js';
import type { FleetState } from '../fleet/fleet-state.js';

const pollMs = 100;

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

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
