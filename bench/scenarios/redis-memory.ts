import { HttpLine } from '../publish/http-line.js';
import { redisDataBytes } from '../servers/redis-info.js';
import type { RedisServers } from '../servers/redis-kit.js';
import { stateFaults } from './delivery.js';
import { whole, wholes, type OptionValues } from './options.js';
import { defineScenario, type ScenarioContext, type ScenarioOutcome } from './scenario.js';
import { pause } from './waiting.js';

const options = {
  users: whole('that are registered, one session each', 19_000, 100, 19_400),
  topics: whole('that each session subscribes to', 2, 0, 50),
  offline: whole('users who are not there and are pushed to', 10_000, 100, 1_000_000),
  queued: wholes('pushes that wait for each of them', [1, 10], 1, 1000),
  bytes: whole('of the payload of a push', 100, 10, 60_000),
  settle: whole('seconds to wait before memory is read', 3, 1, 600),
};

type Values = OptionValues<typeof options>;

/** What Redis holds for users: their registration, and what waits for those who are away. */
export const redisMemory = defineScenario({
  name: 'redis-memory',
  summary: 'Memory of the Redis masters for a user who is online, and for a push that waits.',
  options,
  async run(context, values) {
    const outcomes: ScenarioOutcome[] = [];
    for (const device of ['', 'phone']) {
      outcomes.push(await context.scope((inner) => measureUsers(inner, device, values)));
    }
    for (const count of values.queued) {
      outcomes.push(await context.scope((inner) => measureQueue(inner, count, values)));
    }
    return {
      rows: outcomes.flatMap(({ rows }) => rows),
      faults: outcomes.flatMap(({ faults }) => faults),
      doubts: [],
    };
  },
});

async function measureUsers(
  context: ScenarioContext,
  device: string,
  values: Values,
): Promise<ScenarioOutcome> {
  const { redis, url } = await startUp(context);
  const fleetOf = (prefix: string, sockets: number) =>
    context.startFleet({
      urls: [url],
      sockets,
      groups: [Array.from({ length: values.topics }, (_, i) => `item.memory-${i}`)],
      users: { prefix },
      ...(device === '' ? {} : { device }),
      check: 'none',
    });
  // So that scripts and keys of the cluster as a whole are there already.
  await context.openFleet(await fleetOf('warm', warmUsers));
  await pause(values.settle, context.signal);
  const before = await redisDataBytes(redis);
  const fleet = await fleetOf('memory-user-', values.users);
  await context.openFleet(fleet);
  await pause(values.settle, context.signal);
  const bytes = (await redisDataBytes(redis)) - before;
  const online = await onlineUsers(url);
  const due = values.users + warmUsers;
  return {
    rows: [
      {
        labels: {
          what: device === '' ? 'online user' : 'online user with a device name',
          count: values.users,
        },
        figures: { redisBytesPerUser: bytes / values.users },
      },
    ],
    faults: [
      ...stateFaults(await fleet.state()),
      ...(online === due ? [] : [`${online} users are online instead of ${due}`]),
    ],
    doubts: [],
  };
}

async function measureQueue(
  context: ScenarioContext,
  perUser: number,
  values: Values,
): Promise<ScenarioOutcome> {
  const { redis, url } = await startUp(context);
  const line = await HttpLine.open(url);
  context.defer(() => line.close());
  await pushTo(line, 'warm', warmUsers, values.bytes);
  await pause(values.settle, context.signal);
  const before = await redisDataBytes(redis);
  let queued = 0;
  for (let round = 1; round <= perUser; round++) {
    context.signal.throwIfAborted();
    queued += await pushTo(line, 'away-user-', values.offline, values.bytes);
    context.progress.bar('pushes queued', queued, values.offline * perUser);
  }
  context.progress.done();
  await pause(values.settle, context.signal);
  const bytes = (await redisDataBytes(redis)) - before;
  const due = values.offline * perUser;
  return {
    rows: [
      {
        labels: { what: `push that waits, ${perUser} for a user`, count: due },
        figures: { redisBytesPerQueued: bytes / due },
      },
    ],
    faults: queued === due ? [] : [`${queued} pushes were queued instead of ${due}`],
    doubts: [],
  };
}

async function startUp(
  context: ScenarioContext,
): Promise<{ readonly redis: RedisServers; readonly url: string }> {
  const servers = await context.startServers({ nats: 1, redis: 'cluster' });
  if (servers.redis === undefined) throw new Error('there is no Redis to measure');
  const node = await context.startNode({ servers, env: { TOPICAST_CONNECT_RATE: '1000000' } });
  return { redis: servers.redis, url: node.url };
}

/** @returns how many were queued */
async function pushTo(line: HttpLine, prefix: string, users: number, bytes: number): Promise<number> {
  const data = 'x'.repeat(Math.max(0, bytes - 2));
  let queued = 0;
  for (let first = 0; first < users; first += usersPerCall) {
    const count = Math.min(usersPerCall, users - first);
    const userIds = Array.from({ length: count }, (_, i) => `${prefix}${first + i}`);
    const answer = await line.post('/v1/direct', JSON.stringify({ userIds, data }));
    queued += queuedIn(answer.status, answer.body);
  }
  return queued;
}

/** @throws Error when the call was refused */
export function queuedIn(status: number, body: string): number {
  if (status !== 200) throw new Error(`the push was refused: ${status} ${body.slice(0, 200)}`);
  const answer = JSON.parse(body) as { readonly queued?: unknown };
  return typeof answer.queued === 'number' ? answer.queued : 0;
}

async function onlineUsers(url: string): Promise<number> {
  const answer = (await (await fetch(`${url}/v1/online`)).json()) as { readonly users?: unknown };
  return typeof answer.users === 'number' ? answer.users : NaN;
}

const warmUsers = 100;
const usersPerCall = 5_000;
