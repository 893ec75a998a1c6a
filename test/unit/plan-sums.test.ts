import { describe, expect, it } from 'vitest';
import { costNames, shippedCosts, valuesOf, type Costs, type KnownCosts } from '../../bench/plan/costs.js';
import { batchOf, deliveryUsOf, demandOf, publishUsOf } from '../../bench/plan/demand.js';
import { readInputs, type PlanInputs } from '../../bench/plan/inputs.js';
import { planNats } from '../../bench/plan/nats.js';
import { nodeLoad, PlanImpossible, sizeNodes, type PlanModel } from '../../bench/plan/nodes.js';
import { makePlan } from '../../bench/plan/plan.js';
import { planRedis } from '../../bench/plan/redis.js';
import { hostedShare, hostedTopics, reachOf, topicGroups } from '../../bench/plan/spread.js';
import { planStorm } from '../../bench/plan/storm.js';
import { hostsOf, interestsOf } from '../../bench/scenarios/zipf.js';

/** Round figures, so that the sums can be done in the head. */
const round: Costs = {
  deliveryWriteUs: 3,
  deliveryMessageUs: 1,
  messageUs: 10,
  publishUs: 100,
  publishBatchedUs: 10,
  handshakeUs: 200,
  sessionUsPerSec: 1,
  pushUs: 100,
  beaconUs: 10,
  sessionBytes: 2000,
  subscriptionBytes: 100,
  hostedTopicBytes: 3000,
  ringMessageBytes: 200,
  nodeBaseBytes: 1e8,
  coldReadMs: 4,
  natsPublishUs: 10,
  natsPublishReplicatedUs: 60,
  natsMessageUs: 2,
  natsSubscriptionBytes: 1000,
  natsSubjectBytes: 200,
  natsStoredBytes: 100,
  natsBaseBytes: 5e7,
  natsStreamPerSec: 25_000,
  redisUserBytes: 300,
  redisOnlineBytes: 100,
  redisSessionBytes: 80,
  redisQueuedBytes: 300,
  redisConnectUs: 50,
  redisRefreshUs: 20,
  redisRefreshesPerMin: 0.3,
  redisPushUs: 60,
};

function modelOf(changed: Partial<PlanInputs> = {}, costs: Costs = round): PlanModel {
  const inputs = { ...readInputs(undefined, {}).inputs, ...changed };
  return { inputs, costs, demand: demandOf(inputs, costs) };
}

/** Ten topics that everybody likes equally, two for each of 1,000 users; ten messages a second; nobody comes or goes. */
const small = {
  users: 1000,
  topics: 10,
  topicsPerUser: 2,
  zipf: 0,
  publishZipf: 0,
  messagesPerS: 10,
  bytes: 100,
  topicBytes: 10,
  pushesPerDay: 0,
  sessionMinutes: 100_000,
  connectRate: 5000,
  averageShare: 1,
};

describe('who hosts what', () => {
  it('spreads equally popular topics evenly', () => {
    const groups = topicGroups({ topics: 10, topicsPerUser: 2, zipf: 0, publishZipf: 0 });
    // Each of ten topics is one of a user's two with probability 2 / 10, and gets a tenth of the messages.
    for (const { inclusion, publishShare } of groups) {
      expect(inclusion).toBeCloseTo(0.2, 9);
      expect(publishShare).toBeCloseTo(0.1, 12);
    }
    expect(reachOf(groups)).toBeCloseTo(0.2, 9);
    // A node with three sessions lacks a topic with probability 0.8³ = 0.512, so it hosts 10 × 0.488.
    expect(hostedTopics(groups, 3)).toBeCloseTo(4.88, 9);
    expect(hostedShare(groups, 3)).toBeCloseTo(0.488, 9);
  });

  it('gives everything to everybody when users want as many topics as there are', () => {
    const groups = topicGroups({ topics: 5, topicsPerUser: 8, zipf: 1, publishZipf: 1 });
    expect(reachOf(groups)).toBeCloseTo(1, 12);
    expect(hostedTopics(groups, 1)).toBe(5);
  });

  it('is what users who draw topics by Zipf get', () => {
    const [users, nodes] = [20_000, 4];
    const topics = Array.from({ length: 500 }, (_, i) => `item.${i}`);
    const interests = interestsOf({ users, topics, topicsPerUser: 8, exponent: 1, seed: 7 });
    const groups = topicGroups({ topics: topics.length, topicsPerUser: 8, zipf: 1, publishZipf: 0 });
    const wanted = new Map<string, number>();
    for (const topic of interests.flat()) wanted.set(topic, (wanted.get(topic) ?? 0) + 1);
    for (const [from, to] of [
      [0, 1],
      [3, 4],
      [20, 30],
      [200, 400],
    ] as const) {
      const drawn = topics.slice(from, to).reduce((sum, topic) => sum + (wanted.get(topic) ?? 0), 0);
      const computed = groups.slice(from, to).reduce((sum, { inclusion }) => sum + inclusion * users, 0);
      expect(computed / drawn, `topics ${from} to ${to}`).toBeCloseTo(1, 1);
    }
    // Of few users not all topics find a node.
    const few = interests.slice(0, 200);
    const hosted = [...hostsOf(few, nodes).values()].reduce((sum, count) => sum + count, 0);
    expect((nodes * hostedTopics(groups, few.length / nodes)) / hosted).toBeCloseTo(1, 1);
  });

  it('loses nothing by looking at unpopular topics in groups', () => {
    const [topics, exponent] = [200_000, 0.7];
    let weights = 0;
    for (let i = 1; i <= topics; i++) weights += i ** -exponent;
    const groups = topicGroups({ topics, topicsPerUser: 8, zipf: exponent, publishZipf: exponent });
    expect(groups.length).toBeLessThan(1500);
    expect(groups[0]?.publishShare).toBeCloseTo(1 / weights, 8);
    expect(groups.reduce((sum, group) => sum + group.count, 0)).toBe(topics);
    expect(groups.reduce((sum, group) => sum + group.count * group.publishShare, 0)).toBeCloseTo(1, 9);
    expect(groups.reduce((sum, group) => sum + group.count * group.inclusion, 0)).toBeCloseTo(8, 6);
  });
});

describe('what a delivery and a publish cost', () => {
  it('counts one write for one message, and less for those that come together', () => {
    expect(deliveryUsOf(1, round)).toBe(4); // 1 + 3
    expect(deliveryUsOf(3, round)).toBe(2); // 1 + 3 / 3
    expect(batchOf(0)).toBe(1);
    // 200 a second and 5 ms: one is expected, and of the times with any, 1 / (1 - e⁻¹) = 1.58.
    expect(batchOf(200)).toBeCloseTo(1.582, 3);
    // 4,000 a second: twenty, and hardly ever none.
    expect(batchOf(4000)).toBeCloseTo(20, 6);
  });

  it('shares a request among its messages', () => {
    expect(publishUsOf(1, round)).toBe(100);
    expect(publishUsOf(10, round)).toBe(19); // 10 + 90 / 10
  });

  it('counts a frame as it is on the wire', () => {
    // {"type":"msg","topic":"0123456789","offset":1000000,"data":…}: 60 characters, 100 of payload, and a head of 4 since that is above 125.
    const head = '{"type":"msg","topic":"0123456789","offset":1000000,"data":}'.length;
    expect(head).toBe(60);
    expect(modelOf(small).demand.frameBytes).toBe(60 + 100 + 4);
    expect(modelOf({ ...small, bytes: 20 }).demand.frameBytes).toBe(60 + 20 + 2);
    expect(modelOf({ ...small, codec: 'msgpack' }).demand.frameBytes).toBeLessThan(60 + 100 + 4);
  });
});

describe('a node', () => {
  const model = modelOf(small);

  it('has the CPU of its deliveries, messages, publishes and sessions', () => {
    // 10 messages/s × 200 subscribers of 1,000.
    expect(model.demand.deliveries).toBeCloseTo(2000, 6);
    const { cpu, cpuShare, messages, sessions } = nodeLoad(model, 2);
    expect(sessions).toBe(500);
    // A session gets 2 messages/s, so 0.01 in 5 ms: 1.005 a write, 1 + 3 / 1.005 = 3.985 µs; × 1,000 deliveries/s.
    expect(cpu.deliveries).toBeCloseTo(0.003985, 6);
    // Of 500 sessions at least one wants each topic: all 10 messages/s × 10 µs.
    expect(messages).toBeCloseTo(10, 6);
    expect(cpu.messages).toBeCloseTo(0.0001, 9);
    expect(cpu.publishes).toBeCloseTo(0.0005, 9); // 5/s × 100 µs
    expect(cpu.sessions).toBeCloseTo(0.0005, 9); // 500 × 1 µs
    expect(cpu.beacons).toBeCloseTo(0.000005, 9); // one other node, every 2 s, 10 µs
    expect(cpu.pushes).toBe(0);
    // 1,000 sessions in 6,000,000 s, of which this node gets half, × 200 µs.
    expect(cpu.handshakes).toBeCloseTo(1.67e-8, 10);
    expect(cpuShare).toBeCloseTo(0.003985 + 0.0001 + 0.0005 + 0.0005 + 0.000005, 6);
  });

  it('has the memory of its sessions, topics and rings', () => {
    const { memoryBytes, ringBytes } = nodeLoad(model, 2);
    // A topic gets 1 message/s, more than 128 a day: 10 topics × 128 × (200 + 100 + 164).
    expect(ringBytes).toBeCloseTo(10 * 128 * 464, 0);
    expect(memoryBytes).toBeCloseTo(1e8 + 500 * 2000 + 10 * 3000 + 593_920, 0);
    const more = nodeLoad(modelOf({ ...small, topicsPerUser: 5 }), 2).memoryBytes;
    expect(more - memoryBytes).toBeCloseTo(500 * 3 * 100, 0); // three further topics each
  });

  it('has the network of its frames, packets and pongs', () => {
    // 1,000 deliveries/s × (164 + 66 / 1.005), and 500 sessions / 30 s × (66 + 80).
    expect(nodeLoad(model, 2).outBytes).toBeCloseTo(1000 * (164 + 66 / 1.005008) + (500 / 30) * 146, 0);
  });
});

describe('the number of nodes', () => {
  it('follows the CPU', () => {
    // 1,000,000 sessions × 1 µs, that is one core, and nothing else: with 0.25 of a core each four, and nobody may be away.
    const quiet = { ...small, users: 1_000_000, messagesPerS: 0, lostNodes: 0, connectRate: 1 };
    const { bound, nodes } = sizeNodes(
      modelOf(
        { ...quiet, cpuTarget: 0.25, fileDescriptors: 1e9, nodeMemoryGb: 1000 },
        { ...round, beaconUs: 0, handshakeUs: 0 },
      ),
    );
    expect([bound, nodes]).toEqual(['CPU', 4]);
  });

  it('leaves room for those of the nodes that may be away', () => {
    // 100,000 sessions, 25,100 - 100 a node: four hold them, so five when one may be away and six when two may.
    const at = (lostNodes: number) =>
      sizeNodes(modelOf({ ...small, users: 100_000, fileDescriptors: 25_100, lostNodes }));
    expect(at(0)).toMatchObject({ nodes: 4, bound: 'descriptors' });
    expect(at(1)).toMatchObject({ nodes: 5, bound: 'descriptors' });
    expect(at(2).nodes).toBe(6);
  });

  it('follows the memory', () => {
    // 0.2 GB less 0.1 GB for the process itself, 30,000 B for ten topics and 593,920 B of rings: 99,376,080 B or 49,688 sessions a node.
    const at = (users: number, lostNodes = 0) =>
      sizeNodes(modelOf({ ...small, users, nodeMemoryGb: 0.2, lostNodes, connectRate: 1, cpuTarget: 1 }));
    expect(at(99_376).wanted.memory).toBe(2);
    expect(at(99_377).wanted.memory).toBe(3);
    // Those that are left need the room.
    expect(at(99_376, 1).wanted.memory).toBe(3);
  });

  it('holds a storm on the nodes that are left', () => {
    // 5,000 connects/s × 200 µs are one core. Left nodes may use half of theirs: two, and one that may be away.
    const storm = { ...small, users: 1_000_000, messagesPerS: 0, lossCpuTarget: 0.5, fileDescriptors: 1e9 };
    const costs = { ...round, sessionUsPerSec: 0, beaconUs: 0 };
    const { bound, wanted } = sizeNodes(modelOf(storm, costs));
    expect(wanted['CPU after a loss']).toBe(3);
    expect(bound).toBe('CPU after a loss');
  });

  it('says when none is enough', () => {
    // Each node that hosts the one topic takes all 200,000 messages/s × 10 µs, which is two cores.
    const hot = modelOf({ ...small, topics: 1, topicsPerUser: 1, users: 1e9, messagesPerS: 200_000 });
    expect(() => sizeNodes(hot)).toThrow(PlanImpossible);
  });
});

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
    // 4 × 1,000 + 1,200,000 × 0.3 / 60 + 2 × 200.
    expect(redis.commandsPerSec).toBeCloseTo(4000 + 6000 + 400, 6);
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
    // 18 nodes with 55,556 sessions × 1 µs and 17 beacons: 1 - 0.05556 - 0.000085 each, over 200 µs.
    expect(storm.capacityPerSec).toBeCloseTo((18 * (1 - 1 / 18 - 8.5e-5)) / 200e-6, 0);
  });

  it('takes what the nodes can do when that is less', () => {
    const model = modelOf({
      ...small,
      users: 900_000,
      messagesPerS: 0,
      stormShare: 0.5,
      connectRate: 50_000,
    });
    // One node is left, with 0.9 of its core in use: 0.1 / 200 µs.
    const storm = planStorm(model, 2);
    expect(storm.perSec).toBeCloseTo(500, 6);
    expect(storm.seconds).toBeCloseTo(450_000 / 500 - 1, 6);
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
