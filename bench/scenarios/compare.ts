import { peers } from '../peers/index.js';
import { peerNames, type Peer, type PeerName, type RunningPeer } from '../peers/peer.js';
import type { Fleet } from '../fleet/fleet.js';
import { cpuSecondsOf, rssBytesOf } from '../fleet/usage.js';
import type { Figures } from '../result/result.js';
import { clientDoubt, deliveryFaults, deliveryFigures, runDelivery, type DeliveryRun } from './delivery.js';
import { runLine, summarise, type FanoutRun } from './fanout.js';
import { choices, profileFlags, profileOption, whole, type OptionValues } from './options.js';
import { defineScenario, type ScenarioContext } from './scenario.js';
import { pause, sum, untilQuiet } from './waiting.js';

const options = {
  peers: choices('that take turns', peerNames, peerNames),
  sockets: whole('subscribers of the one topic', 1000, 2, 100_000),
  rate: whole('messages a second', 200, 1, 100_000),
  bytes: whole('of the payload of one message', 80, 60, 60_000),
  seconds: whole('how long a run counts', 5, 1, 600),
  warmUp: whole('seconds before that', 2, 0, 60),
  rounds: whole('runs of each', 3, 1, 100),
  settle: whole('seconds to wait before memory is read', 2, 0, 600),
  atOnce: whole('connects under way at once while they are counted', 100, 1, 5000),
  probes: whole('sockets among them that read at once and take the latency', 20, 2, 1000),
  nap: whole('how many ms late the other sockets may read', 20, 0, 1000),
  profile: profileOption,
};

type Values = OptionValues<typeof options>;
interface PeerRun extends FanoutRun<PeerName> {
  /** What was off, in words, with a peer that may lose messages. */
  readonly missed: readonly string[];
  /** The server was not busy with connects: it could have taken more than came. */
  readonly connectsAreLeast: boolean;
}

/** Of a core: a server that uses less was not what held connects up. */
const serverShareMin = 0.8;
/** More than any of them lets in. */
const connectsPerSec = 1_000_000;

/** The same clients, payloads and pace against servers that others have made. */
export const compare = defineScenario({
  name: 'compare',
  summary:
    'The same clients and messages against Topicast, bare µWebSockets, ws, Socket.IO, NATS, Nchan and Centrifugo: those that are installed.',
  options,
  async run(context, values) {
    const found = peers
      .filter(({ name }) => values.peers.includes(name))
      .map((peer) => ({ peer, look: peer.look() }));
    const skipped = found.flatMap(({ look, peer: { name } }) =>
      'howToGet' in look ? [`${name} (get it with: ${look.howToGet})`] : [],
    );
    for (const line of skipped) context.progress.say(`skipped: ${line}`);
    const chosen = found.flatMap(({ look, peer }) => ('release' in look ? [{ ...look, peer }] : []));
    const releases = new Map(chosen.map(({ peer, release }) => [peer.name, release]));
    const outcome = await measureRounds(
      context,
      chosen.map(({ peer }) => peer),
      values,
    );
    const missed = outcome.rounds.flat().flatMap((run) => run.missed);
    const rows = summarise(outcome.rounds, { sockets: values.sockets, rate: values.rate }, peerNames);
    const least = peerNames.filter((name) =>
      outcome.rounds.flat().some((run) => run.subject === name && run.connectsAreLeast),
    );
    return {
      rows: rows.map(({ labels: { subject = '', ...labels }, ...row }) => ({
        ...row,
        labels: { peer: subject, release: releases.get(subject as PeerName) ?? '', ...labels },
      })),
      faults: outcome.rounds.flat().flatMap((run) => run.faults),
      doubts: [...outcome.rounds.flat().flatMap((run) => run.doubt ?? []), ...outcome.failures],
      settings: {
        ...(skipped.length === 0 ? {} : { skipped: skipped.join('; ') }),
        ...(least.length === 0 ? {} : { handshakesAtLeast: least.join(',') }),
        ...(missed.length === 0 ? {} : { missed: missed.join('; ') }),
      },
    };
  },
});

/** Taking turns, so that what else the machine does falls on all of them. */
async function measureRounds(
  context: ScenarioContext,
  chosen: readonly Peer[],
  values: Values,
): Promise<{ rounds: PeerRun[][]; failures: string[] }> {
  const rounds: PeerRun[][] = [];
  const failures: string[] = [];
  for (let round = 1; round <= values.rounds; round++) {
    const runs: PeerRun[] = [];
    for (const peer of chosen) {
      try {
        const run = await context.scope((inner) => measurePeer(inner, peer, values));
        context.progress.say(`round ${round}: ${runLine(run)}`);
        for (const line of run.missed) context.progress.say(line);
        runs.push(run);
      } catch (error) {
        // One that cannot be measured is no reason to measure no other, unless it is the product itself or what it is measured against.
        context.signal.throwIfAborted();
        if (peer.exact) throw error;
        const why = error instanceof Error ? error.message : String(error);
        failures.push(`${peer.name} could not be measured in round ${round}: ${why}`);
        context.progress.say(failures.at(-1) ?? '');
      }
    }
    rounds.push(runs);
  }
  return { rounds, failures };
}

async function measurePeer(context: ScenarioContext, peer: Peer, values: Values): Promise<PeerRun> {
  const { atOnce, bytes, profile, rate, seconds, sockets, warmUp } = values;
  const server = await peer.start(context, { sockets, flags: profileFlags(profile, peer.name) });
  const rssBytesPerSocket = await context.scope((inner) => measureMemory(inner, server, values));
  // What ending these sockets costs is not a connect's.
  await untilQuiet(server.pids, context.signal);

  const fleet = await startFleet(context, server, values);
  const connects = await measureConnects(context, fleet, server, atOnce);
  const publisher = await server.openPublisher(bytes);
  context.defer(() => publisher.close());
  const run = await runDelivery({
    fleet,
    publisher,
    serverPids: server.pids,
    perSec: rate,
    warmUpSec: warmUp,
    seconds,
    expected: (sent) => sent * sockets,
    signal: context.signal,
  });
  const off = deliveryFaults(peer.name, run);
  if (run.deliveries === 0) throw new Error(`nothing arrived; ${off.join('; ')}`);
  const doubt = clientDoubt(peer.name, run.clientShareMax);
  return {
    subject: peer.name,
    figures: { ...deliveryFigures(run), ...lossFigures(run), ...connects.figures, rssBytesPerSocket },
    latencies: run.clients.latencies.text(),
    faults: peer.exact ? off : [],
    missed: peer.exact ? [] : off,
    ...(doubt === undefined ? {} : { doubt }),
    connectsAreLeast: connects.areLeast,
  };
}

/** What each socket takes in the server, before a message was sent. These sockets warm up the way in, and are closed again. */
async function measureMemory(context: ScenarioContext, server: RunningPeer, values: Values): Promise<number> {
  const rssBytes = (): number => sum(server.pids.map(rssBytesOf));
  const before = rssBytes();
  const fleet = await startFleet(context, server, values);
  await context.openFleet(fleet);
  await pause(values.settle, context.signal);
  return (rssBytes() - before) / values.sockets;
}

/** From the first connect until the last subscription is confirmed. */
async function measureConnects(
  context: ScenarioContext,
  fleet: Fleet,
  { pids }: RunningPeer,
  atOnce: number,
): Promise<{ figures: Figures; areLeast: boolean }> {
  await fleet.begin();
  const startedAt = performance.now();
  const before = pids.map(cpuSecondsOf);
  await context.openFleet(fleet, { perSec: connectsPerSec, atOnce });
  const seconds = (performance.now() - startedAt) / 1000;
  const cpuSec = sum(pids.map((pid, i) => cpuSecondsOf(pid) - (before[i] ?? 0)));
  return {
    areLeast: cpuSec / seconds < serverShareMin,
    figures: {
      handshakesPerSec: fleet.sockets / seconds,
      cpuUsPerHandshake: (cpuSec * 1e6) / fleet.sockets,
    },
  };
}

function startFleet(context: ScenarioContext, server: RunningPeer, values: Values): Promise<Fleet> {
  return context.startFleet({
    urls: [server.url],
    sockets: values.sockets,
    groups: [[server.topic]],
    napMs: values.nap,
    probes: Math.min(values.probes, values.sockets),
    firstNumber: 0,
    ...server.subscribe,
  });
}

/** Of the measured time: what was due and did not come. Since the start: what came twice or after a later one. */
export function lossFigures({
  clients,
  deliveries,
  due,
}: Pick<DeliveryRun, 'deliveries' | 'due'> & {
  readonly clients: Pick<DeliveryRun['clients'], 'state'>;
}): Figures {
  const { disorder, doubled } = clients.state;
  return { lost: Math.max(0, due - deliveries), doubled, disorder };
}
