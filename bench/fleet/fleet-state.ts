import type { HerdState } from './commands.js';

/** The sum of all processes. */
export type FleetState = Omit<HerdState, 'latencies' | 'handshakes'>;

type Count = Exclude<keyof HerdState, 'closed' | 'faults' | 'latencies' | 'handshakes'>;

export function sumOf(states: readonly HerdState[], key: Count): number {
  return states.reduce((total, state) => total + state[key], 0);
}

export function sumStates(states: readonly HerdState[]): FleetState {
  const closed: Record<string, number> = {};
  for (const state of states) {
    for (const [code, count] of Object.entries(state.closed)) closed[code] = (closed[code] ?? 0) + count;
  }
  return {
    ready: sumOf(states, 'ready'),
    opening: sumOf(states, 'opening'),
    waiting: sumOf(states, 'waiting'),
    failed: sumOf(states, 'failed'),
    refused: sumOf(states, 'refused'),
    closed,
    messages: sumOf(states, 'messages'),
    messagesSinceBegin: sumOf(states, 'messagesSinceBegin'),
    directs: sumOf(states, 'directs'),
    reads: sumOf(states, 'reads'),
    lost: sumOf(states, 'lost'),
    doubled: sumOf(states, 'doubled'),
    disorder: sumOf(states, 'disorder'),
    foreign: sumOf(states, 'foreign'),
    gaps: sumOf(states, 'gaps'),
    notRecovered: sumOf(states, 'notRecovered'),
    resyncs: sumOf(states, 'resyncs'),
    cpuSec: sumOf(states, 'cpuSec'),
    faults: states.flatMap((state) => state.faults),
  };
}
