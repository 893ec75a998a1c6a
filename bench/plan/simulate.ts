import { batchWindowMs } from './demand.js';
import type { Plan } from './plan.js';
import { simulateFanout, type FanoutSimulation } from './simulate-fanout.js';
import { simulateStorm, type StormSimulation } from './simulate-storm.js';

/** What waiting does, which arithmetic with means does not tell. */
export interface Simulation {
  readonly seed: number;
  readonly fanout: FanoutSimulation;
  /** The same on the nodes that are left after a loss. */
  readonly fanoutAfterLoss: FanoutSimulation;
  /** Undefined: those who were cut would not be back in a week. */
  readonly storm: StormSimulation | undefined;
}

/** @param seed the same seed gives the same figures */
export function simulate(plan: Plan, seed: number): Simulation {
  const { demand, model, sizing, storm } = plan;
  const { inputs } = model;
  const options = { seed, windowMs: batchWindowMs };
  return {
    seed,
    fanout: simulateFanout(model, sizing.nodes, options),
    fanoutAfterLoss: simulateFanout(model, sizing.nodes - inputs.lostNodes, options),
    storm: simulateStorm({
      // Somebody was cut, if it was one of one user.
      sessions: Math.ceil(storm.sessions),
      ratePerSec: demand.connectRate,
      // Others come and go meanwhile, and want their share.
      freePerSec: storm.perSec - demand.connects,
      silentPingSec: inputs.loss === 'silent' ? inputs.pingSec : 0,
      seed,
    }),
  };
}
