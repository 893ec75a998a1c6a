import { describe, expect, it } from 'vitest';
import { costNames, shippedCosts, valuesOf, type KnownCosts } from '../../bench/plan/costs.js';
import { readInputs, type PlanInputs } from '../../bench/plan/inputs.js';
import { planNats } from '../../bench/plan/nats.js';
import { nodeLoad, PlanImpossible } from '../../bench/plan/nodes.js';
import { makePlan } from '../../bench/plan/plan.js';
import { planRedis } from '../../bench/plan/redis.js';
import { planStorm } from '../../bench/plan/storm.js';
import { modelOf, round, small } from '../support/plan-model.js';

describe('Redis', () => {
  it('holds users, their further sessions and pushes that wait, with headroom', () => {
    // R19: bytes a user, masters and replicas, headroom; 1 M users, tens of millions of pushes a day.
    const redis = planRedis(
      modelOf({
        users: 1_000_000,
        sessionsPerUser: 1.5,
        pushesPerDay: 20_000_000,
        offlineShare: 0.25,
        queueDays: 2,
        pushBytes: 200,
        redisMasterGb: 2,
        redisHeadroom: 0.5,
        redisReplicas: 2,
      }),
    );
    // 300 B and half a session of 80 B: 340 MB.
    expect(redis.userBytes).toBe(340e6);
    // 20 M × 0.25 × 2 days = 10 M, of 300 + 100 B each: 4 GB.
    expect(redis.queuedPushes).toBe(10e6);
    expect(redis.queuedBytes).toBe(4e9);
    // 1 GB of a master's 2 GB may be used. 4.34 GB, of which 100 MB lie on 16 keys: of five masters the fullest has 4.24 / 5 + 0.1 × 4 / 16 =
    // 0.873 GB; of four it would have 1.06 + 0.1 × 4 / 16 = 1.085 GB.
    expect(redis.masters).toBe(5);
    expect(redis.replicas).toBe(10);
    expect(redis.busiestMasterBytes).toBeCloseTo(0.873e9, 0);
    expect(redis.headroom).toBeCloseTo(1 - 0.873 / 2, 9);
    expect(redis.serverBytes).toBe(15 * 2e9);
  });

  it('has the CPU and commands of connects, refreshes and pushes', () => {
    const model = modelOf({
      users: 1_200_000,
      sessionMinutes: 20, // 1,000 connects/s
      pushesPerDay: 8_640_000, // 100/s, 200/s at the peak
      pushPeak: 2,
      connectRate: 4000,
      redisMasters: 1,
      redisMasterGb: 100,
      redisCpuTarget: 1,
    });
    const redis = planRedis(model);
    // 4 × 1,000 + 1,200,000 × 0.3 / 60 × 0.1 + 2 × 200.
    expect(redis.commandsPerSec).toBeCloseTo(4000 + 600 + 400, 6);
    // At the full rate: 2 × 4,000 × 50 µs + 6,000 × 20 µs + 200 × 60 µs.
    expect(redis.cpuShare).toBeCloseTo(0.4 + 0.12 + 0.012, 9);
  });

  it('takes more masters for CPU alone', () => {
    const redis = planRedis(
      modelOf({ users: 1_200_000, sessionMinutes: 20, pushesPerDay: 0, connectRate: 8000 }),
    );
    // 2 × 8,000 × 50 µs + 6,000 × 20 µs = 0.92 of a core; a master may use half of one. At least three are wanted anyway.
    expect(redis.masters).toBe(3);
    expect(redis.cpuShare).toBeCloseTo(0.92 / 3, 9);
    expect(planRedis(modelOf({ ...small, redisMasters: 1, redisCpuTarget: 0.5 })).masters).toBe(1);
    const loaded = { users: 1_200_000, sessionMinutes: 20, pushesPerDay: 0, connectRate: 8000 };
    expect(planRedis(modelOf({ ...loaded, redisMasters: 1 })).masters).toBe(2);
  });

  it('says that masters do not divide the sixteen keys of those online any further', () => {
    // 10 G users × 100 B on 16 keys: 62.5 GB each.
    expect(() => planRedis(modelOf({ users: 1e10, pushesPerDay: 0 }))).toThrow(PlanImpossible);
  });
});

describe('NATS', () => {
  it('gets a message once and gives it to each node that hosts its topic', () => {
    const model = modelOf(small);
    const nats = planNats(model, 4, nodeLoad(model, 4));
    // 10 messages, and a beacon of each of 4 nodes in 2 s.
    expect(nats.in).toBeCloseTo(10 + 2, 6);
    expect(nats.nodesPerMessage).toBeCloseTo(4, 6);
    // To 4 nodes each, 10 acknowledgements, 2 beacons/s to 4 nodes.
    expect(nats.out).toBeCloseTo(40 + 10 + 8, 6);
    expect(nats.subscriptions).toBeCloseTo(4 * (10 + 6), 6);
    // (100 + 10 + 160) B: 40 of them, and 8 beacons of 250 B.
    expect(nats.outBytes).toBeCloseTo(40 * 270 + 8 * 250, 2);
    // Two more copies of each, and two more servers that have nodes.
    expect(nats.routeBytes).toBeCloseTo((10 * 2 + 10 * 2) * 270, 2);
    // 10 × 60 µs, and 58 + 12 - 10 others × 2 µs.
    expect(nats.cpuCores).toBeCloseTo((600 + 120) / 1e6, 9);
    expect(nats.perStream).toBe(5);
  });

  it('gives a topic to no node without a subscriber', () => {
    // Two users on two nodes, one of ten topics each: a node hosts one, and a message has 2 × 0.1 nodes.
    const model = modelOf({ ...small, users: 2, topicsPerUser: 1 });
    const nats = planNats(model, 2, nodeLoad(model, 2));
    expect(nats.nodesPerMessage).toBeCloseTo(0.2, 9);
  });

  it('tells other nodes of pushes, and hears their answers', () => {
    const model = modelOf({
      ...small,
      messagesPerS: 0,
      pushesPerDay: 8_640_000,
      pushPeak: 1,
      offlineShare: 0.2,
    });
    const nats = planNats(model, 5, nodeLoad(model, 5));
    // 100/s, of which 80 are for somebody who is there, on another node than the one asked with probability 4/5: 64 and 64 answers. Beacons: 2.5/s.
    expect(nats.in).toBeCloseTo(128 + 2.5, 6);
    expect(nats.out).toBeCloseTo(128 + 12.5, 6);
  });

  it('stores what comes in the time, and no more of a topic than is kept', () => {
    const day = { ...small, historySec: 86_400, natsReplicas: 3, natsServers: 3 };
    const of = (historyMax: number) => {
      const model = modelOf({ ...day, historyMax });
      return planNats(model, 4, nodeLoad(model, 4));
    };
    // A topic gets 1/s, so 86,400 a day.
    expect(of(1_000_000).storedMessages).toBeCloseTo(864_000, 3);
    expect(of(1000).storedMessages).toBeCloseTo(10_000, 6);
    // Three copies on three servers: each has all. 100 B of payload, 10 of topic, 100 besides.
    expect(of(1000).diskBytes).toBeCloseTo(10_000 * 210, 3);
    // Each of three servers has a third of 64 subscriptions, knows the ten topics (and those of nodes themselves) of two others, and ten of the streams.
    expect(of(1000).memoryBytes).toBeCloseTo(5e7 + (64 / 3 + 2 * 10) * 1000 + 10 * 200, 3);
  });

  it('takes more servers for CPU', () => {
    // 100,000/s × 60 µs are six cores and more; of a server's four a half may be used.
    const model = modelOf({ ...small, topics: 100_000, messagesPerS: 100_000, users: 10 });
    const load = nodeLoad(model, 1);
    const cores = (100_000 * 60 + (load.messages + 0.5 + 0.5) * 2 + 100_000 * 2) / 1e6;
    const nats = planNats(model, 1, load);
    expect(nats.cpuCores).toBeCloseTo(cores, 6);
    expect(nats.servers).toBe(Math.ceil(cores / 2));
  });
});

describe('a storm', () => {
  it('takes the admission rate, after one second that was saved up', () => {
    const model = modelOf({ ...small, users: 1_000_000, messagesPerS: 0, stormShare: 0.1 });
    const storm = planStorm(model, 20);
    expect(storm.sessions).toBe(100_000);
    expect(storm.survivors).toBe(18);
    expect(storm.perSec).toBe(5000);
    expect(storm.seconds).toBe(19); // 100,000 / 5,000 - 1
    // 18 nodes with 0.01 of a core for themselves, 55,556 sessions × 1 µs, and 8.5 beacons a second × (10 + 100) µs: what is left over 200 µs.
    expect(storm.capacityPerSec).toBeCloseTo((18 * (1 - 0.01 - 1 / 18 - 9.35e-4)) / 200e-6, 0);
  });

  it('takes what the nodes can do when that is less', () => {
    const model = modelOf({
      ...small,
      users: 900_000,
      messagesPerS: 0,
      stormShare: 0.5,
      connectRate: 50_000,
    });
    // One node is left, with 0.91 of its core in use: 0.09 / 200 µs.
    const storm = planStorm(model, 2);
    expect(storm.perSec).toBeCloseTo(450, 6);
    expect(storm.seconds).toBeCloseTo(450_000 / 450 - 1, 6);
  });

  it('of everybody finds all nodes', () => {
    // A network fault, say: nobody's node is gone.
    expect(planStorm(modelOf({ ...small, stormShare: 1 }), 20).survivors).toBe(20);
  });

  it('reads the topics that are new to the nodes', () => {
    // Four users on two nodes, one of ten topics each: 10 × (1 - 0.9²) = 1.9 hosted; all on one: 10 × (1 - 0.9⁴) = 3.439.
    const model = modelOf({ ...small, users: 4, topicsPerUser: 1, stormShare: 0.5 });
    const storm = planStorm(model, 2);
    expect(storm.newTopics).toBeCloseTo(3.439 - 1.9, 6);
    expect(storm.resumeReadsMax).toBeCloseTo(2 * 3.439, 6);
    // Two reads each of 4 ms, four at once.
    expect(storm.readSeconds).toBeCloseTo((1.539 * 2 * 0.004) / 4, 9);
  });
});

describe('a plan', () => {
  const known = Object.fromEntries(
    costNames.map((name) => [name, { value: round[name], basis: 'measured', from: 'this test' }]),
  ) as KnownCosts;
  const planOf = (changed: Partial<PlanInputs>) =>
    makePlan({ ...readInputs(undefined, {}).inputs, ...changed }, known);

  it('counts machines by cores, or by network', () => {
    const plan = planOf({ users: 1_000_000, messagesPerS: 0, fileDescriptors: 20_100, coresPerMachine: 8 });
    // 1,000,000 / 20,000 and one that may be away, eight on a machine.
    expect(plan.sizing.nodes).toBe(51);
    expect(plan.machines).toBe(7);
    const wide = planOf({ ...small, users: 10_000, bytes: 100_000, messagesPerS: 100, networkGbit: 1 });
    const bits = wide.sizing.nodes * wide.load.outBytes * 8;
    expect(wide.machines).toBe(Math.ceil(bits / 0.5e9));
  });

  it('says what one message to everybody takes', () => {
    const plan = planOf({ ...small, users: 100_000, fileDescriptors: 50_100, lostNodes: 0, connectRate: 1 });
    expect(plan.sizing.nodes).toBe(2);
    expect(plan.broadcastSeconds).toBeCloseTo(50_000 * 4e-6, 9);
  });

  it('lets in 5,000 a second, or twice what comes and goes', () => {
    expect(planOf({ users: 1_000_000, connectRate: 0 }).storm.perSec).toBe(5000);
    // 18,000,000 in half an hour are 10,000/s.
    expect(planOf({ users: 18_000_000, connectRate: 0, nodeMemoryGb: 100 }).storm.perSec).toBe(20_000);
  });

  it('warns', () => {
    const warned = (changed: Partial<PlanInputs>) => planOf(changed).warnings.join('\n');
    expect(warned(small)).toBe('');
    expect(makePlan(readInputs(undefined, {}).inputs, shippedCosts()).warnings[0]).toContain('are assumed');
    expect(warned({ ...small, messagesPerS: 30_000, durableNamespaces: 1 })).toContain('a stream gets 30000');
    expect(warned({ ...small, users: 100_000, sessionMinutes: 1, connectRate: 1000 })).toContain(
      '1667 connections come in a second',
    );
    expect(
      warned({
        ...small,
        users: 400_000,
        messagesPerS: 0,
        connectRate: 1,
        fileDescriptors: 500_000,
        lostNodes: 0,
        cpuTarget: 1,
      }),
    ).toContain('one message to everybody keeps each node busy for 1.6 s');
    expect(
      warned({
        ...small,
        users: 1_000_000,
        topics: 100_000,
        topicsPerUser: 8,
        messagesPerS: 200,
        nodeMemoryGb: 2,
      }),
    ).toContain('with TOPICAST_RING_MESSAGES=16');
    expect(warned({ ...small, users: 1e9, fileDescriptors: 66_000, redisMasterGb: 100 })).toContain(
      'tell each other',
    );
  });

  it('comes with every cost', () => {
    for (const name of costNames) expect(valuesOf(shippedCosts())[name], name).toBeGreaterThan(0);
  });
});
