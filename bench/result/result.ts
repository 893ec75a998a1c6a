import { z } from 'zod';
import { figureNames, type FigureName } from './figures.js';

/**
 * What one run of a scenario leaves behind, as JSON. The table on the screen, the report and the planner are made of it, so a figure that is not in
 * here has not been measured.
 */
export interface BenchResult {
  readonly format: 1;
  readonly scenario: string;
  /** ISO 8601, UTC. */
  readonly startedAt: string;
  /** Of Topicast. */
  readonly version: string;
  readonly machine: Machine;
  /** The options of the run. */
  readonly settings: Readonly<Record<string, string | number | boolean>>;
  readonly rows: readonly ResultRow[];
  /** Correctness that was off, in words: the run has failed. */
  readonly faults: readonly string[];
  /** Why figures may not be believed (a client was the bottleneck, say): rows concerned are left out. */
  readonly doubts: readonly string[];
}

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryBytes: number;
  readonly os: string;
  /** Version of Node.js. */
  readonly node: string;
}

export interface ResultRow {
  /** What tells this row from the others of its run, such as `{ subject: 'node-durable', sockets: 1000 }`. */
  readonly labels: Readonly<Record<string, string | number>>;
  readonly figures: Figures;
  readonly latency?: LatencyCurve;
}

export type Figures = Readonly<Partial<Record<FigureName, number>>>;

/** Points of a distribution, ascending: the share (0 to 1) of messages that took at most so many ms. */
export type LatencyCurve = readonly (readonly [share: number, ms: number])[];

const rowSchema = z.object({
  labels: z.record(z.string(), z.union([z.string(), z.number()])),
  // An older or newer file may know figures that this version does not: they are kept out, not refused.
  figures: z.record(z.string(), z.number()).transform((all) => knownFigures(all)),
  latency: z
    .array(z.tuple([z.number().min(0).max(1), z.number()]))
    .readonly()
    .optional(),
});

const resultSchema = z.object({
  format: z.literal(1),
  scenario: z.string().min(1),
  startedAt: z.string(),
  version: z.string(),
  machine: z.object({
    cpu: z.string(),
    cores: z.number(),
    memoryBytes: z.number(),
    os: z.string(),
    node: z.string(),
  }),
  settings: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
  rows: z.array(rowSchema),
  faults: z.array(z.string()),
  doubts: z.array(z.string()),
});

/** @throws Error that says what is wrong with the text */
export function parseResult(text: string): BenchResult {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new Error('not JSON', { cause });
  }
  const parsed = resultSchema.safeParse(value);
  if (!parsed.success) {
    throw new Error(`not the result of a scenario: ${z.prettifyError(parsed.error).replaceAll('\n', ' ')}`);
  }
  const { rows, ...rest } = parsed.data;
  return {
    ...rest,
    rows: rows.map(({ labels, figures, latency }) => ({
      labels,
      figures,
      ...(latency === undefined ? {} : { latency }),
    })),
  };
}

function knownFigures(all: Readonly<Record<string, number>>): Figures {
  const known: Partial<Record<FigureName, number>> = {};
  for (const name of figureNames) if (all[name] !== undefined) known[name] = all[name];
  return known;
}
