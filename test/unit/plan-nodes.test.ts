import { describe, expect, it } from 'vitest';
import { batchOf, deliveryUsOf, publishUsOf, wakesOf } from '../../bench/plan/demand.js';
import type { PlanInputs } from '../../bench/plan/inputs.js';
import { nodeLoad, PlanImpossible, sizeNodes } from '../../bench/plan/nodes.js';
import { hostedShare, hostedTopics, reachOf, topicGroups } from '../../bench/plan/spread.js';
import { hostsOf, interestsOf } from '../../bench/scenarios/zipf.js';
import { modelOf, round, small } from '../support/plan-model.js';

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
    // Each wakes the node, and so does each of half a beacon a second: 10.5 × 100 µs.
    expect(cpu.messages).toBeCloseTo(0.0001 + 0.00105, 9);
    expect(cpu.publishes).toBeCloseTo(0.0005 + 0.001, 9); // 5/s × 100 µs, and 5 × 200 µs to wake up
    expect(cpu.process).toBeCloseTo(0.01, 9); // 10,000 µs a second
    expect(cpu.sessions).toBeCloseTo(0.0005, 9); // 500 × 1 µs
    expect(cpu.beacons).toBeCloseTo(0.000005, 9); // one other node, every 2 s, 10 µs
    expect(cpu.pushes).toBe(0);
    // 1,000 sessions in 6,000,000 s, of which this node gets half, × 200 µs.
    expect(cpu.handshakes).toBeCloseTo(1.67e-8, 10);
    expect(cpuShare).toBeCloseTo(0.003985 + 0.00115 + 0.0015 + 0.0005 + 0.000005 + 0.01, 6);
  });

  it('wakes up once in 5 ms at most', () => {
    expect(wakesOf(50)).toBe(50);
    expect(wakesOf(4000)).toBe(200);
    // 4,000/s, which both nodes host: 4,000 × 10 µs, and 100 µs to wake up. Of them each takes 2,000/s over HTTP: 2,000 × 100 µs, and 200 µs to wake up.
    const { cpu } = nodeLoad(modelOf({ ...small, messagesPerS: 4000 }), 2);
    // The 200 turns a second are shared: two thirds of what comes are messages of topics, a third requests.
    expect(cpu.messages).toBeCloseTo(0.04 + (2 / 3) * 0.02, 5);
    expect(cpu.publishes).toBeCloseTo(0.2 + (1 / 3) * 0.04, 5);
  });

  it('takes publishes in requests, in frames, or not at all', () => {
    const of = (changed: Partial<PlanInputs>) => nodeLoad(modelOf({ ...small, ...changed }), 2).cpu.publishes;
    // 5/s in half a request a second: 5 × (10 + 90 / 10) µs, and 0.5 × 200 µs.
    expect(of({ publishBatch: 10 })).toBeCloseTo(0.000095 + 0.0001, 9);
    // Each its own frame, whatever a request would hold: 5 × 20 µs and 5 × 200 µs.
    expect(of({ publishVia: 'ws', publishBatch: 10 })).toBeCloseTo(0.0001 + 0.001, 9);
    expect(of({ publishVia: 'nats' })).toBe(0);
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
        { ...round, beaconUs: 0, handshakeUs: 0, messageWakeUs: 0, nodeUsPerSec: 0 },
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
    const costs = { ...round, sessionUsPerSec: 0, beaconUs: 0, messageWakeUs: 0, nodeUsPerSec: 0 };
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
