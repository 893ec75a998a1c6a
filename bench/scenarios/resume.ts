import { openPublisher, type Publisher } from '../fleet/publisher.js';
import { fastPublisherEnv } from '../floor/subjects.js';
import type { RunningNode } from '../demo/node-process.js';
import type { Fleet } from '../fleet/fleet.js';
import type { FleetState } from '../fleet/fleet-state.js';
import { countsBetween, jetStreamKind, listenToNats, type NatsListener } from '../servers/nats-listener.js';
import { clientDoubt, expectedDeliveries, stateFaults } from './delivery.js';
import { choice, whole, type OptionValues } from './options.js';
import { defineScenario, type ScenarioContext } from './scenario.js';
import { groupsOf, publisherToken, secretOf } from './sessions.js';
import { pause, sum, untilState } from './waiting.js';

const options = {
  sockets: whole('sessions on all nodes', 10_000, 30, 58_000),
  topics: whole('durable topics in all', 100, 1, 10_000),
  perSession: whole('topics that each session subscribes to', 2, 1, 20),
  nodes: whole('of which one is killed', 3, 2, 20),
  nats: choice('servers', ['1', '3'], '1'),
  rate: whole('messages a second over all topics', 50, 1, 10_000),
  bytes: whole('of the payload of one message', 100, 60, 60_000),
  codec: choice('of the clients', ['json', 'msgpack'], 'json'),
  ring: whole('messages of a topic that nodes keep in memory; 0: as shipped', 0, 0, 100_000),
  warmUp: whole('seconds before the kill', 5, 1, 600),
  patience: whole('seconds until all have to be back', 120, 1, 3600),
};

type Values = OptionValues<typeof options>;

/** Sessions of a node that dies come back to the others while messages go on. */
export const resume = defineScenario({
  name: 'resume',
  summary:
    'Kills a node: how fast its sessions are back, that they have missed nothing, and what that asks of NATS.',
  options,
  async run(context, values) {
    const servers = await context.startServers({ nats: values.nats === '1' ? 1 : 3, redis: 'cluster' });
    const env = {
      ...fastPublisherEnv,
      TOPICAST_JWT_SECRET: secretOf(),
      TOPICAST_CONNECT_RATE: '1000000',
      // Audits come every few seconds, in bursts: one of them in the quiet time would hide as many reads.
      TOPICAST_AUDIT_SEC: '3600',
      ...(values.ring === 0 ? {} : { TOPICAST_RING_MESSAGES: String(values.ring) }),
    };
    const [survivor, ...others] = await context.startNodes(values.nodes - 1, { servers, env });
    const victim = await context.startNode({ servers, env, mayEnd: true });
    if (survivor === undefined) throw new Error('nobody is left to take the sessions');
    const topics = Array.from({ length: values.topics }, (_, i) => `item.resume-${i}`);
    const groups = groupsOf(topics, values.perSession);
    const fleet = await context.startFleet({
      urls: [survivor, ...others, victim].map(({ url }) => url),
      sockets: values.sockets,
      groups,
      codec: values.codec,
      users: { prefix: 'resume', secret: secretOf() },
      firstNumber: 0,
      comeBack: true,
    });
    await context.openFleet(fleet);
    const publisher = await openPublisher({
      url: survivor.url,
      bytes: values.bytes,
      codec: values.codec,
      topics,
      token: await publisherToken(),
    });
    context.defer(() => publisher.close());
    const listener = await listenToNats(servers.nats?.urls[0] ?? '', '$JS.API.>', jetStreamKind);
    context.defer(() => listener.close());
    const expected = expectedDeliveries(groups, values.sockets, topics);
    return measure(context, { fleet, publisher, victim, listener, expected }, values);
  },
});

interface Parts {
  readonly fleet: Fleet;
  readonly publisher: Publisher;
  readonly victim: RunningNode;
  readonly listener: NatsListener;
  readonly expected: (sent: number) => number;
}

async function measure(context: ScenarioContext, parts: Parts, values: Values) {
  const { expected, fleet, listener, publisher, victim } = parts;
  const { signal } = context;
  const flow = startFlow(publisher, values.rate, signal);
  await pause(values.warmUp, signal);
  const held = (await fleet.state()).ready;

  await fleet.begin();
  const atKill = await counted(listener);
  const killedAt = performance.now();
  process.kill(victim.pid, 'SIGKILL');
  const lost = await untilState(fleet, (state) => closedIn(state) > 0, values.patience, signal);
  const back = await untilState(fleet, (state) => state.ready === held, values.patience, signal);
  const seconds = (performance.now() - killedAt) / 1000;
  context.progress.say(`${closedIn(back)} sessions were cut, all were back after ${seconds.toFixed(1)} s`);
  const during = countsBetween(atKill, await counted(listener));
  const measured = await fleet.measured();

  // What nodes ask all the time is not the resumption's.
  const atQuiet = await counted(listener);
  await pause(seconds, signal);
  const quiet = countsBetween(atQuiet, await counted(listener));
  await flow.stop();
  const due = expected(publisher.sent);
  const state = await fleet.delivered(due);
  const requests = Math.max(0, sum([...during.values()]) - sum([...quiet.values()]));
  const doubt = clientDoubt('resume', measured.cpuShareMax);
  const { latencies } = measured;
  const row = {
    labels: { nodes: values.nodes, topics: values.topics, nats: values.nats },
    figures: {
      sockets: values.sockets,
      seconds,
      jetStreamRequestsPerTopic: requests / (values.topics * (values.nodes - 1)),
      deliveries: state.messages,
      p50Ms: latencies.ms(0.5),
      p99Ms: latencies.ms(0.99),
      maxMs: latencies.ms(1),
      clientCpuShare: measured.cpuShareMax,
    },
    latency: latencies.curve(),
  };
  return {
    rows: doubt === undefined ? [row] : [],
    faults: [
      ...(closedIn(lost) > 0 ? [] : ['no session noticed that its node was gone']),
      ...faultsOf(state, { sockets: values.sockets, due, cut: expectedCut(values.sockets, values.nodes) }),
      ...publisher.refused,
    ],
    doubts: doubt === undefined ? [] : [doubt],
    settings: {
      jetStreamRequestsDuring: textOf(during),
      jetStreamRequestsQuiet: textOf(quiet),
      sessionsCut: closedIn(state),
    },
  };
}

/** What is wrong after all should be back; that the sockets of the dead node ended is not. */
export function faultsOf(
  state: FleetState,
  wanted: { readonly sockets: number; readonly due: number; readonly cut: number },
): string[] {
  const { 1006: cut = 0, ...otherCodes } = state.closed;
  return [
    ...(state.ready === wanted.sockets ? [] : [`${state.ready} of ${wanted.sockets} sessions are back`]),
    ...(state.messages === wanted.due ? [] : [`${state.messages} deliveries instead of ${wanted.due}`]),
    ...(cut === wanted.cut ? [] : [`${cut} sessions were cut instead of ${wanted.cut}`]),
    ...stateFaults({ ...state, closed: otherCodes }),
  ];
}

/** Session i is on node `i % nodes`; the last node dies. */
export function expectedCut(sockets: number, nodes: number): number {
  return Math.floor(sockets / nodes);
}

function startFlow(publisher: Publisher, rate: number, signal: AbortSignal): { stop(): Promise<void> } {
  let isStopping = false;
  const run = async (): Promise<void> => {
    // A second at a time, so that it can be stopped.
    while (!isStopping) await publisher.send(rate, rate, signal);
  };
  const running = run();
  running.catch(() => undefined); // An abort ends the run by itself; any other end is told by `stop`.
  return {
    stop() {
      isStopping = true;
      return running;
    },
  };
}

async function counted(listener: NatsListener): Promise<Map<string, number>> {
  await listener.flush();
  return new Map(listener.counts);
}

function closedIn(state: FleetState): number {
  return sum(Object.values(state.closed));
}

function textOf(counts: ReadonlyMap<string, number>): string {
  return [...counts].map(([kind, count]) => `${kind} ${count}`).join(', ') || 'none';
}
