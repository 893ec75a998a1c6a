import { subjectNames, subjects, type Subject } from '../floor/subjects.js';
import { mergeLatencies, type Latencies } from '../fleet/latencies.js';
import { openPublisher } from '../fleet/publisher.js';
import type { FigureName } from '../result/figures.js';
import type { Figures, ResultRow } from '../result/result.js';
import { clientDoubt, deliveryFaults, deliveryFigures, runDelivery } from './delivery.js';
import {
  choice,
  choices,
  decimal,
  profileFlags,
  profileOption,
  whole,
  type OptionValues,
} from './options.js';
import { defineScenario, type ScenarioContext } from './scenario.js';

const options = {
  sockets: whole('subscribers of the one topic', 1000, 2, 1_000_000),
  rate: whole('messages a second', 200, 1, 100_000),
  bytes: whole('of the payload of one message', 80, 60, 60_000),
  codec: choice('of the clients', ['json', 'msgpack'], 'json'),
  subjects: choices('servers that take turns', subjectNames, subjectNames),
  seconds: whole('how long a run counts', 5, 1, 600),
  warmUp: whole('seconds before that', 2, 0, 60),
  rounds: whole('runs of each', 3, 1, 100),
  probes: whole('sockets among them that read at once and take the latency', 20, 2, 1000),
  nap: whole('how many ms late the other sockets may read', 20, 0, 1000),
  quiet: decimal(
    'leave rounds out in which a read of a probe brought more messages than this: others kept the machine from its work; up to ' +
      'four times --rounds are tried; 0: none is left out',
    0,
    0,
    1000,
  ),
  profile: profileOption,
};

export type FanoutValues = OptionValues<typeof options>;

/** Rounds that are tried for one that is quiet. */
const triesPerRound = 4;

/** One run of one server. */
export interface FanoutRun<Name extends string = Subject['name']> {
  readonly subject: Name;
  readonly figures: Figures;
  /** `Latencies.text()` */
  readonly latencies: string;
  readonly faults: readonly string[];
  readonly doubt?: string;
}

export const fanout = defineScenario({
  name: 'fanout',
  summary:
    'What a delivery costs a node, against a µWebSockets process that does nothing but fan out the same bytes to as many sockets.',
  options,
  async run(context, values) {
    const chosen = subjects.filter(({ name }) => values.subjects.includes(name));
    const rounds: FanoutRun[][] = [];
    let missing = values.rounds;
    const triesMax = values.rounds * (values.quiet > 0 ? triesPerRound : 1);
    for (let tries = 1; missing > 0 && tries <= triesMax; tries++) {
      const round: FanoutRun[] = [];
      // Taking turns, so that what else the machine does falls on all of them.
      for (const subject of chosen) {
        const run = await context.scope((inner) => measureFanout(inner, subject, values));
        context.progress.say(`round ${tries}: ${runLine(run)}`);
        round.push(run);
      }
      rounds.push(round);
      if (isQuiet(round, values.quiet)) missing--;
    }
    const quiet = rounds.filter((round) => isQuiet(round, values.quiet));
    const left = rounds.length - quiet.length;
    const runs = rounds.flat();
    return {
      rows: summarise(
        quiet,
        { sockets: values.sockets, rate: values.rate, codec: values.codec },
        subjectNames,
      ),
      faults: runs.flatMap((run) => run.faults),
      doubts: [
        ...runs.flatMap((run) => run.doubt ?? []),
        ...(left === 0 ? [] : [`${left} of ${rounds.length} rounds were not quiet and are left out`]),
      ],
    };
  },
});

/** One run of one server, with sockets of its own. */
export async function measureFanout(
  context: ScenarioContext,
  subject: Subject,
  values: FanoutValues,
): Promise<FanoutRun> {
  const { bytes, codec, nap, probes, profile, rate, seconds, sockets, warmUp } = values;
  const server = await context.startNode({
    entry: subject.entry,
    env: subject.env,
    flags: profileFlags(profile, subject.name),
  });
  const fleet = await context.startFleet({
    urls: [server.url],
    sockets,
    groups: [[subject.topic]],
    codec,
    napMs: nap,
    probes: Math.min(probes, sockets),
    firstNumber: 0,
    ...subject.subscribe,
  });
  await context.openFleet(fleet);
  const publisher = await openPublisher({
    url: server.url,
    bytes,
    codec,
    topics: [subject.topic],
    ...subject.publish,
  });
  context.defer(() => publisher.close());
  const run = await runDelivery({
    fleet,
    publisher,
    serverPids: [server.pid],
    perSec: rate,
    warmUpSec: warmUp,
    seconds,
    expected: (sent) => sent * sockets,
    signal: context.signal,
  });
  const doubt = clientDoubt(subject.name, run.clientShareMax);
  return {
    subject: subject.name,
    figures: deliveryFigures(run),
    latencies: run.clients.latencies.text(),
    faults: deliveryFaults(subject.name, run),
    ...(doubt === undefined ? {} : { doubt }),
  };
}

/** Whether each message reached the probes on its own, in every run of a round. @param messagesPerReadMax 0: every round counts */
function isQuiet(round: readonly FanoutRun[], messagesPerReadMax: number): boolean {
  return (
    messagesPerReadMax === 0 || round.every((run) => (run.figures.messagesPerRead ?? 0) <= messagesPerReadMax)
  );
}

/**
 * A row for each server, in the order of `names`: medians over its runs, those in doubt left out. The ratio to the bare server is taken within a round, so that a slow round
 * does not count against one of them.
 */
export function summarise<Name extends string>(
  rounds: readonly (readonly FanoutRun<Name>[])[],
  labels: ResultRow['labels'],
  names: readonly Name[],
): ResultRow[] {
  const sound = rounds.map((round) => round.filter((run) => run.doubt === undefined));
  return names.flatMap((subject) => {
    const runs = sound.flat().filter((run) => run.subject === subject);
    if (runs.length === 0) return [];
    const ratios = sound.flatMap((round) => {
      const own = costIn(round, subject);
      const bare = costIn(round, 'bare');
      return own === undefined || bare === undefined ? [] : [own / bare];
    });
    const latencies = mergeLatencies(runs.map((run) => run.latencies));
    const figures = mediansOf(runs.map((run) => run.figures));
    return {
      labels: { subject, ...labels },
      figures: ratios.length === 0 ? figures : { ...figures, ratioToBare: median(ratios) },
      ...curveOf(latencies),
    };
  });
}

function curveOf(latencies: Latencies): Pick<ResultRow, 'latency'> {
  return latencies.count === 0 ? {} : { latency: latencies.curve() };
}

function costIn(round: readonly FanoutRun<string>[], subject: string): number | undefined {
  return round.find((run) => run.subject === subject)?.figures.cpuUsPerDelivery;
}

/** Of each figure; the greatest where it is a greatest. */
export function mediansOf(all: readonly Figures[]): Figures {
  const names = [...new Set(all.flatMap((one) => Object.keys(one) as FigureName[]))];
  return Object.fromEntries(
    names.map((name) => {
      const values = all.flatMap((one) => one[name] ?? []);
      return [name, name === 'maxMs' ? Math.max(...values) : median(values)];
    }),
  );
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? NaN) + upper) / 2;
}

/** For people who wait. */
export function runLine({ figures, subject }: FanoutRun<string>): string {
  const percent = (share = 0): string => `${(share * 100).toFixed(0)} %`;
  return [
    `${subject}: ${figures.deliveries ?? 0} deliveries`,
    `${figures.cpuUsPerDelivery?.toFixed(2) ?? '?'} µs of server CPU each`,
    `server at ${percent(figures.serverCpuShare)} of a core, busiest client at ${percent(figures.clientCpuShare)}`,
    `p50 ${figures.p50Ms?.toFixed(2) ?? '?'} ms, p99 ${figures.p99Ms?.toFixed(2) ?? '?'} ms`,
  ].join(', ');
}
