import { fanout } from './fanout.js';
import type { Scenario } from './scenario.js';

/** Every scenario, in the order in which they are listed. */
export const scenarios: readonly Scenario[] = [fanout];
