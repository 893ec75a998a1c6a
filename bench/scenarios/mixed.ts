import type { Fleet } from '../fleet/fleet.js';
import { openPublisher } from '../fleet/publisher.js';
import { rssBytesOf } from '../fleet/usage.js';
import { fastPublisherEnv } from '../floor/subjects.js';
import { natsTraffic, type NatsTraffic } from '../servers/nats-traffic.js';
import { redisCommands } from '../servers/redis-info.js';
import { clientDoubt, deliveryFaults, deliveryFigures, expectedDeliveries, runDelivery } from './delivery.js';
import { choice, decimal, profileFlags, profileOption, whole, type OptionValues } from './options.js';
import { defineScenario, type ScenarioContext } from './scenario.js';
import type { Servers } from './servers.js';
import { publisherToken, secretOf } from './sessions.js';
import { pause, sum } from './waiting.js';
import { hostsOf, interestsOf } from './zipf.js';

const options = {
  users: whole('one session each, on all nodes', 5000, 10, 39_000),
  nodes: whole('that share them', 2, 1, 20),
  topics: whole('in all', 500, 1, 100_000),
  topicsPerUser: whole('that each user subscribes to', 8, 1, 100),
  zipf: decimal('exponent of popularity: 0 makes all topics equally popular', 0.7, 0, 5),
  seed: whole('decides who subscribes to what', 1, 0, 2 ** 31 - 1),
  delivery: choice('of the topics', ['durable', 'live'], 'durable'),
  rate: whole('messages a second over all topics', 100, 1, 100_000),
  bytes: whole('of the payload of one message', 100, 60, 60_000),
  codec: choice('of the clients', ['json', 'msgpack'], 'json'),
  seconds: whole('how long a run counts', 10, 1, 600),
  warmUp: whole('seconds before that', 3, 0, 60),
  warmRate: whole(
    'messages a second of the warm-up; V8 compiles only what has run often, so thousands are needed at a low rate; 0: --rate',
    0,
    0,
    100_000,
  ),
  settle: whole('seconds to wait before memory is read', 5, 1, 600),
  probes: whole('sockets among them that read at once and take the latency', 20, 2, 1000),
  nap: whole('how many ms late the other sockets may read', 20, 0, 1000),
  profile: profileOption,
};

type Values = OptionValues<typeof options>;

/** A launch in small: users with several topics each, a few of which are popular. */
export const mixed = defineScenario({
  name: 'mixed',
  summary:
    'Users with several topics each, some popular and most not, on a cluster: everything that a planner has to know, at once.',
  options,
  async run(context, values) {
    const { nodes: nodeCount, users } = values;
    const servers = await context.startServers({ nats: 1, redis: 'cluster' });
    const nodes = await context.startNodes(nodeCount, {
      servers,
      env: { ...fastPublisherEnv, TOPICAST_JWT_SECRET: secretOf(), TOPICAST_CONNECT_RATE: '1000000' },
      flags: profileFlags(values.profile),
    });
    const topics = topicsOf(values);
    const interests = interestsOf({
      users,
      topics,
      topicsPerUser: values.topicsPerUser,
      exponent: values.zipf,
      seed: values.seed,
    });
    const urls = nodes.map(({ url }) => url);
    const pids = nodes.map(({ pid }) => pid);
    // What the processes grow by once is not a session's.
    await context.scope(async (inner) => {
      await inner.openFleet(await fleetOf(inner, urls, 'warm', interests.slice(0, warmUsers), values));
    });
    await pause(values.settle, context.signal);
    const rssBefore = sum(pids.map(rssBytesOf));
    const fleet = await fleetOf(context, urls, 'mixed', interests, values);
    await context.openFleet(fleet);
    await pause(values.settle, context.signal);
    const rssIdle = sum(pids.map(rssBytesOf));

    const own = { context, fleet, servers, urls, pids, topics, interests };
    const { counted, doubt, faults, figures, latency } = await measure(own, values);
    const row = {
      labels: { delivery: values.delivery, codec: values.codec, nodes: nodeCount },
      figures: {
        sockets: users,
        ...figures,
        ...counted,
        rssBytesPerSession: (rssIdle - rssBefore) / users,
        serverRssMb: sum(pids.map(rssBytesOf)) / 1e6,
      },
      latency,
    };
    return {
      rows: doubt === undefined ? [row] : [],
      faults,
      doubts: doubt === undefined ? [] : [doubt],
      settings: { nats: servers.nats?.version ?? '' },
    };
  },
});

interface Parts {
  readonly context: ScenarioContext;
  readonly fleet: Fleet;
  readonly servers: Servers;
  readonly urls: readonly string[];
  readonly pids: readonly number[];
  readonly topics: readonly string[];
  readonly interests: readonly (readonly string[])[];
}

async function measure(parts: Parts, values: Values) {
  const { context, fleet, interests, pids, topics, urls } = parts;
  const publisher = await openPublisher({
    url: urls[0] ?? '',
    bytes: values.bytes,
    codec: values.codec,
    topics,
    token: await publisherToken(),
  });
  context.defer(() => publisher.close());
  // What nodes say without a message: beacons, refreshes, audits.
  const before = await countsOf(parts.servers);
  await pause(values.seconds, context.signal);
  const atStart = await countsOf(parts.servers);
  const startedAt = performance.now();
  const run = await runDelivery({
    fleet,
    publisher,
    serverPids: pids,
    perSec: values.rate,
    ...(values.warmRate === 0 ? {} : { warmPerSec: values.warmRate }),
    warmUpSec: values.warmUp,
    seconds: values.seconds,
    expected: expectedDeliveries(interests, values.users, topics),
    signal: context.signal,
  });
  const took = (performance.now() - startedAt) / 1000;
  const atEnd = await countsOf(parts.servers);
  const hosts = hostsOf(interests, values.nodes);
  const counted = perMessage({
    quiet: difference(before, atStart),
    busy: difference(atStart, atEnd),
    times: took / values.seconds,
    messages: publisher.sent,
    hostings: hostingsOf(publisher.sent, topics, hosts),
  });
  return {
    counted,
    figures: { messagesPerSec: values.rate, ...deliveryFigures(run) },
    latency: run.clients.latencies.curve(),
    faults: deliveryFaults('mixed', run),
    doubt: clientDoubt('mixed', run.clientShareMax),
  };
}

interface Counts extends NatsTraffic {
  readonly redis: number;
}

async function countsOf({ nats, redis }: Servers): Promise<Counts> {
  if (nats === undefined || redis === undefined) throw new Error('there is no cluster to look at');
  return { ...(await natsTraffic(nats)), redis: await redisCommands(redis) };
}

function difference(before: Counts, after: Counts): Counts {
  return { in: after.in - before.in, out: after.out - before.out, redis: after.redis - before.redis };
}

/**
 * @param parts.quiet what was counted while nobody published
 * @param parts.times how many times as long the busy time was
 * @param parts.hostings for each message the nodes that have a subscriber, summed
 */
export function perMessage(parts: {
  readonly quiet: Counts;
  readonly busy: Counts;
  readonly times: number;
  readonly messages: number;
  readonly hostings: number;
}): { natsInPerMessage: number; natsOutPerMessage: number; redisCommandsPerMessage: number } {
  const { busy, hostings, messages, quiet, times } = parts;
  return {
    natsInPerMessage: (busy.in - quiet.in * times) / messages,
    natsOutPerMessage: (busy.out - quiet.out * times) / hostings,
    redisCommandsPerMessage: Math.max(0, busy.redis - quiet.redis * times) / messages,
  };
}

/** Of `sent` messages, message i to `topics[i % topics.length]`. */
export function hostingsOf(
  sent: number,
  topics: readonly string[],
  hosts: ReadonlyMap<string, number>,
): number {
  const each = topics.map((topic) => hosts.get(topic) ?? 0);
  return Math.floor(sent / topics.length) * sum(each) + sum(each.slice(0, sent % topics.length));
}

function topicsOf({ delivery, topics }: Values): string[] {
  const namespace = delivery === 'durable' ? 'item' : 'live';
  return Array.from({ length: topics }, (_, i) => `${namespace}.mixed-${i}`);
}

function fleetOf(
  context: ScenarioContext,
  urls: readonly string[],
  prefix: string,
  groups: readonly (readonly string[])[],
  values: Values,
): Promise<Fleet> {
  return context.startFleet({
    urls,
    sockets: groups.length,
    groups,
    codec: values.codec,
    users: { prefix, secret: secretOf() },
    napMs: values.nap,
    probes: Math.min(values.probes, groups.length),
    firstNumber: 0,
  });
}

const warmUsers = 1000;
