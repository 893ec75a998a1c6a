import { subjectNames, subjects, type Subject } from '../floor/subjects.js';
import type { Figures, ResultRow } from '../result/result.js';
import { stateFaults } from './delivery.js';
import { fanout, measureFanout, runLine, summarise, type FanoutRun, type FanoutValues } from './fanout.js';
import { idleFleet } from './idle.js';
import { memoryEach, memoryReader, type MemoryUse } from './memory-of.js';
import { choice, choices, settleOption, whole, wholes, type OptionValues } from './options.js';
import { defaultsOf, defineScenario, type ScenarioContext, type ScenarioOutcome } from './scenario.js';
import { secretOf, serversOf } from './sessions.js';

const options = {
  sizes: wholes('sockets, one size after the other', [1000, 5000, 10_000, 19_000], 100, 19_400),
  deliveries: whole('a second: the more sockets, the fewer messages', 40_000, 1000, 1_000_000),
  bytes: whole('of the payload of one message', 80, 60, 60_000),
  codec: choice('of the clients', ['json', 'msgpack'], 'json'),
  subjects: choices('servers beside the bare one', subjectNames, ['node-live', 'node-durable']),
  seconds: whole('how long a run counts', 8, 1, 600),
  warmUp: whole('seconds before that', 2, 0, 60),
  rounds: whole('runs of each', 3, 1, 100),
  engine: choice('what the node of idle sessions connects to', ['cluster', 'embedded'], 'cluster'),
  settle: settleOption,
};

type Values = OptionValues<typeof options>;

/** The same figures at several sizes: what they do when sockets become more. */
export const grow = defineScenario({
  name: 'grow',
  summary:
    'How the cost of a delivery, against the bare server at the same size, and the memory of a session change with the number of sockets.',
  options,
  async run(context, values) {
    const [rows, faults, doubts]: [ResultRow[], string[], string[]] = [[], [], []];
    const chosen = subjects.filter(({ name }) => name === 'bare' || values.subjects.includes(name));
    for (const sockets of values.sizes) {
      const runs = await fanoutAt(context, sockets, chosen, values);
      rows.push(...summarise(runs, { sockets, rate: rateAt(sockets, values.deliveries) }, subjectNames));
      faults.push(...runs.flat().flatMap((run) => run.faults.map((fault) => `${sockets} sockets: ${fault}`)));
      doubts.push(
        ...runs
          .flat()
          .flatMap((run) => run.doubt ?? [])
          .map((doubt) => `${sockets} sockets: ${doubt}`),
      );
    }
    const memory = await context.scope((inner) => measureMemory(inner, values));
    return { rows: [...rows, ...memory.rows], faults: [...faults, ...memory.faults], doubts };
  },
});

async function fanoutAt(
  context: ScenarioContext,
  sockets: number,
  chosen: readonly Subject[],
  values: Values,
): Promise<FanoutRun[][]> {
  const rounds: FanoutRun[][] = [];
  for (let round = 1; round <= values.rounds; round++) {
    const runs: FanoutRun[] = [];
    for (const subject of chosen) {
      const run = await context.scope((inner) =>
        measureFanout(inner, subject, fanoutValues(sockets, values)),
      );
      context.progress.say(`${sockets} sockets, round ${round}: ${runLine(run)}`);
      runs.push(run);
    }
    rounds.push(runs);
  }
  return rounds;
}

/** Messages a second that make about so many deliveries; one at least. */
export function rateAt(sockets: number, deliveriesPerSec: number): number {
  return Math.max(1, Math.round(deliveriesPerSec / sockets));
}

function fanoutValues(sockets: number, values: Values): FanoutValues {
  const { bytes, codec, deliveries, rounds, seconds, warmUp } = values;
  const rate = rateAt(sockets, deliveries);
  return { ...(defaultsOf(fanout) as FanoutValues), sockets, rate, bytes, codec, seconds, warmUp, rounds };
}

/** Sessions come to one node until there are as many as each size says, and stay. */
async function measureMemory(context: ScenarioContext, values: Values): Promise<ScenarioOutcome> {
  const { codec, engine, settle } = values;
  const sizes = [...new Set(values.sizes)].sort((a, b) => a - b);
  const servers = await serversOf(context, engine);
  const memory = memoryReader(context);
  const node = await context.startNode({
    ...(servers === undefined ? {} : { servers }),
    flags: memory.options.flags,
    env: { ...memory.options.env, TOPICAST_JWT_SECRET: secretOf(), TOPICAST_CONNECT_RATE: '1000000' },
  });
  const steps: MemoryStep[] = [];
  const faults: string[] = [];
  for (const [i, sessions] of sizes.entries()) {
    const prefix = `grow-${i}-`;
    const more = sessions - (sizes[i - 1] ?? 0);
    const fleet = await idleFleet(context, [node], more, { topics: 2, pool: 100, codec, prefix });
    await context.openFleet(fleet);
    steps.push({ sessions, use: await memory.read([node.pid], settle) });
    faults.push(...stateFaults(await fleet.state()).map((fault) => `${sessions} idle sessions: ${fault}`));
  }
  const rows = memoryFigures(steps).map(({ figures, sessions }) => ({
    labels: { subject: 'idle sessions', sockets: sessions },
    figures,
  }));
  return { rows, faults, doubts: [] };
}

interface MemoryStep {
  readonly sessions: number;
  readonly use: MemoryUse;
}

/** What each session has taken beyond the first step's: with that one the process itself grows, by more than its few sessions do. */
export function memoryFigures(steps: readonly MemoryStep[]): { sessions: number; figures: Figures }[] {
  const [first] = steps;
  return steps.map(({ sessions, use }, i) => {
    const figures = { sockets: sessions, serverRssMb: use.rss / 1e6 };
    if (i === 0 || first === undefined) return { sessions, figures };
    const each = memoryEach(first.use, use, sessions - first.sessions);
    return {
      sessions,
      figures: {
        ...figures,
        rssBytesPerSession: each.rss,
        heapBytesPerSession: each.heap,
      },
    };
  });
}
