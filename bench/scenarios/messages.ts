import type { Fleet } from '../fleet/fleet.js';
import { openPublisher } from '../fleet/publisher.js';
import { cpuSecondsOf } from '../fleet/usage.js';
import { fastPublisherEnv } from '../floor/subjects.js';
import type { ResultRow } from '../result/result.js';
import { clientDoubt, deliveryFaults, runDelivery } from './delivery.js';
import { choice, profileFlags, profileOption, whole, wholes, type OptionValues } from './options.js';
import { defineScenario, type ScenarioContext, type ScenarioOutcome } from './scenario.js';
import { pause, sum } from './waiting.js';

const options = {
  rates: wholes('messages a second, one after the other', [50, 200, 1000, 4000], 1, 100_000),
  topics: whole('that the messages go round, with one subscriber each', 100, 10, 10_000),
  delivery: choice('of the topics', ['durable', 'live'], 'durable'),
  bytes: whole('of the payload of one message', 100, 60, 60_000),
  seconds: whole('how long a rate counts', 10, 1, 600),
  warmUp: whole('messages before that, as V8 compiles only what has run often', 30_000, 0, 10_000_000),
  quiet: whole('seconds without messages, for what a node takes anyway', 10, 1, 600),
  profile: profileOption,
};

type Values = OptionValues<typeof options>;

/** What a message costs where little else is to be done for it: one subscriber, on another node than the publisher's. */
export const messages = defineScenario({
  name: 'messages',
  summary:
    'What a message costs the node that takes it from a publisher, the node that hosts its topic, and NATS, by the rate of messages.',
  options,
  async run(context, values) {
    const servers = await context.startServers({ nats: 1, redis: 'one' });
    const node = { servers, env: fastPublisherEnv, flags: profileFlags(values.profile) };
    const [asked, home] = [await context.startNode(node), await context.startNode(node)];
    const topics = topicsOf(values);
    const fleet = await subscribersOf(context, home.url, topics);
    const publisher = await openPublisher({ url: asked.url, bytes: values.bytes, topics });
    context.defer(() => publisher.close());
    await publisher.send(values.warmUp, warmPerSec, context.signal);
    await fleet.delivered(publisher.sent);

    const nats = (servers.nats?.nodes ?? []).map((server) => server.process.pid);
    const used = () => [[asked.pid], [home.pid], nats].map((pids) => sum(pids.map(cpuSecondsOf)));
    await pause(restSec, context.signal);
    const atRest = used();
    await pause(values.quiet, context.signal);
    const quiet = used().map((sec, i) => (sec - (atRest[i] ?? 0)) / values.quiet);

    const [rows, faults, doubts]: [ResultRow[], string[], string[]] = [[], [], []];
    for (const rate of values.rates) {
      const before = used();
      const run = await runDelivery({
        fleet,
        publisher,
        serverPids: [asked.pid, home.pid],
        perSec: rate,
        warmUpSec: 0,
        seconds: values.seconds,
        expected: (sent) => sent,
        signal: context.signal,
      });
      const us = used().map(
        (sec, i) => ((sec - (before[i] ?? 0) - (quiet[i] ?? 0) * run.seconds) * 1e6) / run.due,
      );
      const [askedUs = 0, homeUs = 0, natsUs = 0] = us;
      const label = `${rate} messages/s`;
      faults.push(...deliveryFaults(label, run));
      const doubt = clientDoubt(label, run.clientShareMax);
      if (doubt !== undefined) {
        doubts.push(doubt);
        continue;
      }
      rows.push({
        labels: { delivery: values.delivery, rate },
        figures: {
          cpuUsPerMessage: homeUs,
          cpuUsPerPublish: askedUs,
          natsCpuUsPerMessage: natsUs,
          quietCpuShare: ((quiet[0] ?? 0) + (quiet[1] ?? 0)) / 2,
          serverCpuShare: run.serverCpuSec / run.seconds,
          clientCpuShare: run.clientShareMax,
        },
      });
    }
    return {
      rows,
      faults,
      doubts,
      settings: { nats: servers.nats?.version ?? '' },
    } satisfies ScenarioOutcome;
  },
});

/** Each topic has one of them. */
async function subscribersOf(
  context: ScenarioContext,
  url: string,
  topics: readonly string[],
): Promise<Fleet> {
  const fleet = await context.startFleet({
    urls: [url],
    sockets,
    groups: Array.from({ length: sockets }, (_, i) => topics.filter((__, topic) => topic % sockets === i)),
    codec: 'json',
    napMs: 0,
    probes: 0,
    firstNumber: 0,
  });
  await context.openFleet(fleet);
  return fleet;
}

function topicsOf({ delivery, topics }: Values): string[] {
  const namespace = delivery === 'durable' ? 'item' : 'live';
  return Array.from({ length: topics }, (_, i) => `${namespace}.messages-${i}`);
}

/** Few, so that each is written to often and its costs are those of `fanout`. */
const sockets = 10;
const warmPerSec = 3000;
const restSec = 3;
