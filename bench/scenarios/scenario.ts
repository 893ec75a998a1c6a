import type { RunningNode } from '../demo/node-process.js';
import type { Ramp } from '../fleet/commands.js';
import type { FleetOptions } from '../fleet/fleet-plan.js';
import type { Fleet } from '../fleet/fleet.js';
import type { BenchResult } from '../result/result.js';
import type { OptionSpecs, OptionValues } from './options.js';
import type { Progress } from './progress.js';
import type { Servers, ServersWanted } from './servers.js';

/** Something that is measured: what it starts, drives and counts. */
export interface Scenario {
  /** On the command line and in results. */
  readonly name: string;
  /** One sentence. */
  readonly summary: string;
  readonly options: OptionSpecs;
  /** @param values of every option @throws Error when it cannot be measured; the signal's reason when aborted */
  run(context: ScenarioContext, values: Readonly<Record<string, unknown>>): Promise<ScenarioOutcome>;
}

/** What is seen of a run. `faults` make it fail; a row that is in doubt is left out of `rows`, and `doubts` says why. */
export interface ScenarioOutcome extends Pick<BenchResult, 'rows' | 'faults' | 'doubts'> {
  /** Beyond the options: what a reader has to know, such as the version of a server. */
  readonly settings?: BenchResult['settings'];
}

/** What a scenario may start. Everything is ended after the run, in the opposite order, however the run ends. */
export interface ScenarioContext {
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
  readonly progress: Progress;
  /** Called at the end of the run, or of the scope, the last one first. */
  defer(undo: () => Promise<void> | void): void;
  /** A run within the run: what is started in it ends with it. */
  scope<T>(run: (inner: ScenarioContext) => Promise<T>): Promise<T>;
  /** NATS and Redis. */
  startServers(wanted: ServersWanted): Promise<Servers>;
  startNode(options?: NodeOptions): Promise<RunningNode>;
  /** One after the other: the first makes the streams. Should one of them end by itself, the run fails. */
  startNodes(count: number, options?: NodeOptions): Promise<RunningNode[]>;
  /** No socket is open then. */
  startFleet(options: FleetOptions): Promise<Fleet>;
  /** `fleet.open` with a progress bar. @throws Error when a socket cannot be opened */
  openFleet(fleet: Fleet, ramp?: Partial<Ramp>): Promise<void>;
}

export interface NodeOptions {
  /** What the nodes connect to; none: the memory engine. */
  readonly servers?: Servers;
  /** On top of the shipped defaults. */
  readonly env?: Readonly<Record<string, string>>;
  /** Of Node.js itself. */
  readonly flags?: readonly string[];
  /** Of the build; a node unless given. */
  readonly entry?: string;
  /** Its end does not make the run fail: the scenario ends it on purpose. */
  readonly mayEnd?: boolean;
}

/** A scenario whose `run` knows the types of its options. */
export function defineScenario<S extends OptionSpecs>(scenario: {
  readonly name: string;
  readonly summary: string;
  readonly options: S;
  run(context: ScenarioContext, values: OptionValues<S>): Promise<ScenarioOutcome>;
}): Scenario {
  return {
    ...scenario,
    // Values come from the `parse` and `fallback` of these very options.
    run: (context, values) => scenario.run(context, values as OptionValues<S>),
  };
}

/** The value of every option when none is given. */
export function defaultsOf({ options }: Pick<Scenario, 'options'>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(options).map(([key, { fallback }]) => [key, fallback]));
}
