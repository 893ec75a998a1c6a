import type { HerdState, Ramp } from './commands.js';
import { planHerds, type FleetOptions } from './fleet-plan.js';
import { sumOf, sumStates, type FleetState } from './fleet-state.js';
import { startHerd, type HerdProcess } from './herd-process.js';
import { mergeLatencies, type Latencies } from './latencies.js';
import { descriptorsMax } from './usage.js';

export interface Fleet {
  readonly sockets: number;
  readonly processes: readonly HerdProcess[];
  /** Rejects when a process of it fails; never resolves. */
  readonly died: Promise<never>;
  /**
   * Opens all sockets that are not open (those that were dropped come back with their positions). Told what the state is a few times a second.
   * @throws Error when some cannot be opened, with the first reason, or nothing is answered any more; the signal's when aborted
   */
  open(ramp?: Partial<Ramp>, onProgress?: (state: FleetState) => void): Promise<FleetState>;
  state(): Promise<FleetState>;
  /** Measuring starts now: see `FleetMeasure`. */
  begin(): Promise<void>;
  /** What was measured since `begin`. */
  measured(): Promise<FleetMeasure>;
  /** Waits until so many `msg` frames have come since the start, or none has for `stalledMs`. */
  delivered(messages: number, stalledMs?: number): Promise<FleetState>;
  /** Cuts this share (0 to 1) of the open sockets, evenly spread. */
  drop(share: number): Promise<FleetState>;
  /** Closes all sockets; the processes stay. */
  close(): Promise<FleetState>;
  /** Ends the processes. */
  stop(): Promise<void>;
}

/** From `begin` on. */
export interface FleetMeasure {
  readonly state: FleetState;
  readonly seconds: number;
  readonly latencies: Latencies;
  readonly handshakes: Latencies;
  /** Share of one core that each process has used. */
  readonly cpuShares: readonly number[];
  readonly cpuShareMax: number;
  readonly cpuSec: number;
  /** Of the probes, or of all when there are none: near 1 when the server wrote each message on its own and the machine had time for everybody. */
  readonly messagesPerRead: number;
}

export const rampDefault: Ramp = { perSec: 4_000, atOnce: 100, retryRefused: true };

const progressMs = 250;
const pollMs = 50;
const stalledMsDefault = 5_000;
const silentMsMaxDefault = 60_000;

/** Starts the processes; no socket is open then. @throws Error when one cannot be started; none is left then */
export async function startFleet(options: FleetOptions, signal?: AbortSignal): Promise<Fleet> {
  signal?.throwIfAborted();
  const herds: HerdProcess[] = [];
  const started = await Promise.allSettled(
    planHerds(options, descriptorsMax()).map(async (settings) => startHerd(settings, options.program)),
  );
  for (const one of started) if (one.status === 'fulfilled') herds.push(one.value);
  const failed = started.find((one) => one.status === 'rejected');
  if (failed !== undefined) {
    await Promise.all(herds.map((herd) => herd.stop()));
    throw failed.reason;
  }
  return new RunningFleet(options, herds, signal);
}

class RunningFleet implements Fleet {
  readonly sockets: number;
  readonly processes: readonly HerdProcess[];
  readonly died: Promise<never>;
  readonly #hasProbes: boolean;
  readonly #atOnce: number;
  readonly #silentMsMax: number;
  readonly #signal: AbortSignal | undefined;
  #beganAt = 0;
  #cpuAtBegin: readonly number[] = [];

  constructor(options: FleetOptions, processes: readonly HerdProcess[], signal: AbortSignal | undefined) {
    this.sockets = options.sockets;
    this.processes = processes;
    this.#hasProbes = (options.probes ?? 0) > 0;
    this.#atOnce = options.processesAtOnce ?? processes.length;
    this.#silentMsMax = options.silentMsMax ?? silentMsMaxDefault;
    this.#signal = signal;
    this.died = Promise.race(processes.map((one) => one.died));
    this.died.catch(() => undefined); // Every request rejects with it as well.
  }

  async open(
    ramp: Partial<Ramp> = {},
    onProgress: (state: FleetState) => void = () => undefined,
  ): Promise<FleetState> {
    const whole = { ...rampDefault, ...ramp };
    const opened = this.#openStages(whole);
    const progress = this.#watch(opened, onProgress);
    await Promise.all([opened, progress]);
    const state = await this.state();
    if (state.failed > 0) {
      throw new Error(
        `${state.failed} of ${this.sockets} sockets could not be opened: ${state.faults[0] ?? 'no reason known'}`,
      );
    }
    return state;
  }

  async #openStages(ramp: Ramp): Promise<void> {
    for (const stage of this.#stages()) {
      const perSec = ramp.perSec / stage.length;
      const atOnce = Math.max(1, Math.floor(ramp.atOnce / stage.length));
      const command = { do: 'open', ramp: { ...ramp, perSec, atOnce } } as const;
      await Promise.all(stage.map((one) => one.ask(command)));
    }
  }

  /** Tells of the state until `opened` settles. @throws the signal's reason; Error when the servers answer nothing any more */
  async #watch(opened: Promise<void>, onProgress: (state: FleetState) => void): Promise<void> {
    const settled = opened.then(
      () => true,
      () => true, // Whoever called `open` is told of it.
    );
    let last = '';
    let movedAt = performance.now();
    while (!(await Promise.race([settled, pause(progressMs)]))) {
      this.#signal?.throwIfAborted();
      const state = await this.state();
      onProgress(state);
      const { closed, failed, opening, ready, refused } = state;
      const now = JSON.stringify([ready, failed, refused, closed]);
      // Sockets that only wait for the time that a server gave them are no sign of trouble.
      if (now !== last || opening === 0) movedAt = performance.now();
      last = now;
      if (performance.now() - movedAt > this.#silentMsMax) {
        throw new Error(
          `${opening} sockets have had no answer for ${this.#silentMsMax / 1000} s; ${ready} of ${this.sockets} are open`,
        );
      }
    }
  }

  /** Probes are opened before and after the others, so that they are the first and the last subscribers in the server's order. */
  #stages(): HerdProcess[][] {
    if (!this.#hasProbes) return inChunks(this.processes, this.#atOnce);
    const [first, ...others] = this.processes;
    const last = others.at(-1)?.settings.latency === true ? others.pop() : undefined;
    return [first, others, last]
      .map((stage) => (stage === undefined ? [] : Array.isArray(stage) ? stage : [stage]))
      .filter((stage) => stage.length > 0);
  }

  async state(): Promise<FleetState> {
    return sumStates(await this.#ask({ do: 'state', latencies: false }));
  }

  async begin(): Promise<void> {
    const states = await this.#ask({ do: 'begin' });
    this.#cpuAtBegin = states.map((state) => state.cpuSec);
    this.#beganAt = performance.now();
  }

  async measured(): Promise<FleetMeasure> {
    // Encoding latencies costs CPU that is not the measurement's.
    const states = await this.#ask({ do: 'state', latencies: false });
    const seconds = (performance.now() - this.#beganAt) / 1000;
    const cpuSecs = states.map((state, i) => state.cpuSec - (this.#cpuAtBegin[i] ?? 0));
    const full = await this.#ask({ do: 'state', latencies: true });
    const readers = states.filter((_, i) => !this.#hasProbes || this.processes[i]?.settings.latency === true);
    const cpuShares = cpuSecs.map((sec) => sec / seconds);
    return {
      state: sumStates(full),
      seconds,
      latencies: mergeLatencies(full.map((state) => state.latencies)),
      handshakes: mergeLatencies(full.map((state) => state.handshakes)),
      cpuShares,
      cpuShareMax: Math.max(...cpuShares),
      cpuSec: cpuSecs.reduce((sum, sec) => sum + sec, 0),
      messagesPerRead: sumOf(readers, 'messagesSinceBegin') / sumOf(readers, 'reads'),
    };
  }

  async delivered(messages: number, stalledMs = stalledMsDefault): Promise<FleetState> {
    let count = -1;
    let movedAt = performance.now();
    while (true) {
      this.#signal?.throwIfAborted();
      const state = await this.state();
      if (state.messages > count) movedAt = performance.now();
      count = state.messages;
      if (count >= messages || performance.now() - movedAt > stalledMs) return state;
      await pause(pollMs);
    }
  }

  async drop(share: number): Promise<FleetState> {
    return sumStates(await this.#ask({ do: 'drop', share }));
  }

  async close(): Promise<FleetState> {
    return sumStates(await this.#ask({ do: 'close' }));
  }

  async stop(): Promise<void> {
    await Promise.all(this.processes.map((one) => one.stop()));
  }

  #ask(request: Parameters<HerdProcess['ask']>[0]): Promise<HerdState[]> {
    return Promise.all(this.processes.map((one) => one.ask(request)));
  }
}

function inChunks<T>(all: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, i) => all.slice(i * size, (i + 1) * size));
}

function pause(ms: number): Promise<false> {
  return new Promise((resolve) => setTimeout(() => resolve(false), ms));
}
