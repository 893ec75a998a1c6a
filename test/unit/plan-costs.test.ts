import { describe, expect, it } from 'vitest';
import { checkMixed, parseMixed } from '../../bench/plan/check.js';
import { costsFrom, deliveryCosts } from '../../bench/plan/costs-from.js';
import {
  formatCosts,
  parseCosts,
  shippedCosts,
  type KnownCost,
  type KnownCosts,
} from '../../bench/plan/costs.js';
import type { BenchResult, ResultRow } from '../../bench/result/result.js';

function resultOf(
  scenario: string,
  rows: readonly ResultRow[],
  changed: Partial<BenchResult> = {},
): BenchResult {
  return {
    format: 1,
    scenario,
    startedAt: '2026-01-02T03:04:05.000Z',
    version: '1.2.3',
    machine: { cpu: 'Test CPU', cores: 2, memoryBytes: 24e9, os: 'Linux 6', node: 'v20.0.0' },
    settings: {},
    rows,
    faults: [],
    doubts: [],
    ...changed,
  };
}

/** Round figures to reckon with, whatever is shipped. */
const example = (value: number): KnownCost => ({ value, basis: 'assumed', from: 'an example' });
const known: KnownCosts = {
  ...shippedCosts(),
  deliveryWriteUs: example(3),
  deliveryMessageUs: example(1.1),
  nodeUsPerSec: example(10_000),
  messageUs: example(15),
  messageWakeUs: example(100),
  publishFrameUs: example(20),
  publishWakeUs: example(200),
  sessionUsPerSec: example(1),
  beaconUs: example(10),
  sessionBytes: example(2500),
  subscriptionBytes: example(200),
  hostedTopicBytes: example(3000),
};

describe('costs from results', () => {
  it('separates the write from the message by rows of different batches', () => {
    // 1 + 3 / batch.
    const rows = [
      { labels: { subject: 'node-live' }, figures: { cpuUsPerDelivery: 4, messagesPerRead: 1 } },
      { labels: { subject: 'node-durable' }, figures: { cpuUsPerDelivery: 1.3, messagesPerRead: 10 } },
      { labels: { subject: 'bare' }, figures: { cpuUsPerDelivery: 9, messagesPerRead: 1 } },
    ];
    const found = deliveryCosts(rows, known);
    expect(found.deliveryWriteUs).toBeCloseTo(3, 9);
    expect(found.deliveryMessageUs).toBeCloseTo(1, 9);
  });

  it('gives no message a cost below 0', () => {
    // A line through both would start at -0.5: writes cost 12 and 7 µs, so what a message adds cannot be told.
    const rows = [
      { labels: { subject: 'node-live' }, figures: { cpuUsPerDelivery: 12, messagesPerRead: 1 } },
      { labels: { subject: 'node-live' }, figures: { cpuUsPerDelivery: 0.7, messagesPerRead: 10 } },
    ];
    const found = deliveryCosts(rows, known);
    expect(found.deliveryMessageUs).toBe(0);
    // By relative errors: (1 / 12 + 0.1 / 0.7) / (1 / 12² + 0.1² / 0.7²).
    expect(found.deliveryWriteUs).toBeCloseTo(8.269, 3);
  });

  it('does so over several results', () => {
    const of = (startedAt: string, cpuUsPerDelivery: number, messagesPerRead: number) => ({
      file: `${startedAt}.json`,
      result: resultOf(
        'fanout',
        [{ labels: { subject: 'node-live' }, figures: { cpuUsPerDelivery, messagesPerRead } }],
        { startedAt },
      ),
    });
    const { costs } = costsFrom(known, [of('2026-02', 1.3, 10), of('2026-01', 4, 1)]);
    expect(costs.deliveryWriteUs).toMatchObject({
      value: 3,
      from: expect.stringContaining('2026-02') as string,
    });
    expect(costs.deliveryMessageUs.value).toBe(1);
  });

  it('separates waking up from what is done for each message', () => {
    const row = (delivery: string, rate: number, figures: ResultRow['figures']) => ({
      labels: { delivery, rate },
      figures: { quietCpuShare: 0.007, ...figures },
    });
    // A delivery is 1.1 + 3 µs, and a node wakes up 200 times a second at most: once a message, or once for 5 or 20.
    const result = resultOf('messages', [
      row('durable', 100, { cpuUsPerMessage: 4.1 + 10 + 400, cpuUsPerPublish: 30 + 500 }),
      row('durable', 1000, { cpuUsPerMessage: 4.1 + 10 + 80, cpuUsPerPublish: 30 + 100 }),
      row('durable', 4000, { cpuUsPerMessage: 4.1 + 10 + 20, cpuUsPerPublish: 30 + 25 }),
      row('live', 4000, { cpuUsPerMessage: 1, cpuUsPerPublish: 1 }),
    ]);
    const { costs } = costsFrom(known, [{ file: 'messages.json', result }]);
    const values = Object.fromEntries(Object.entries(costs).map(([name, { value }]) => [name, value]));
    expect(values).toMatchObject({
      nodeUsPerSec: 7000,
      messageUs: 10,
      messageWakeUs: 400,
      publishFrameUs: 30,
      publishWakeUs: 500,
    });
  });

  it('changes both alike when there is only one regime', () => {
    const rows = [
      { labels: { subject: 'node-live' }, figures: { cpuUsPerDelivery: 8.2, messagesPerRead: 1 } },
      { labels: { subject: 'node-durable' }, figures: { cpuUsPerDelivery: 8.2, messagesPerRead: 1 } },
    ];
    // 8.2 in place of 3 + 1.1.
    expect(deliveryCosts(rows, known).deliveryWriteUs).toBeCloseTo(6, 9);
    expect(deliveryCosts(rows, known).deliveryMessageUs).toBeCloseTo(2.2, 9);
    expect(deliveryCosts([], known)).toEqual({});
  });

  it('takes medians, and says where each is from', () => {
    const connect = resultOf(
      'connect',
      [180, 150, 990].map((cpuUsPerHandshake, round) => ({
        labels: { engine: 'cluster', round },
        figures: { cpuUsPerHandshake, redisCpuUsPerConnect: 30 },
      })),
    );
    const { costs, left, taken } = costsFrom(known, [{ file: 'connect.json', result: connect }]);
    expect(costs.handshakeUs).toEqual({
      value: 180,
      basis: 'measured',
      from: 'topicast bench connect (1.2.3), connect.json',
      machine: 'Test CPU, 2 cores, 24 GB, Linux 6, Node.js v20.0.0',
      date: '2026-01-02T03:04:05.000Z',
    });
    expect(costs.redisConnectUs.value).toBe(30);
    expect(costs.pushUs).toBe(known.pushUs);
    expect([taken, left]).toEqual([['handshakeUs', 'redisConnectUs'], []]);
  });

  it('reads idle sessions, topics, pushes, publishes and Redis', () => {
    const files = [
      resultOf('idle', [
        {
          labels: { engine: 'cluster', topics: 4, nodes: 2 },
          // 4 % of a core, of which the nodes take 1 % each by themselves: 2 µs a second for each of 10,000 sessions. 90 MB less 10,000 × 3,400 B on two nodes.
          figures: { sockets: 10_000, rssBytesPerSession: 3400, serverCpuShare: 0.04, serverRssMb: 90 },
        },
      ]),
      resultOf('topics', [
        { labels: { engine: 'cluster', topics: 10 }, figures: { rssBytesPerTopic: 90_000 } },
        { labels: { engine: 'cluster', topics: 100_000 }, figures: { rssBytesPerTopic: 2800 } },
        { labels: { engine: 'embedded', topics: 1_000_000 }, figures: { rssBytesPerTopic: 1000 } },
      ]),
      resultOf('direct', [
        { labels: { connections: 1 }, figures: { cpuUsPerPush: 400, redisCpuUsPerPush: 90 } },
        { labels: { connections: 64 }, figures: { cpuUsPerPush: 120, redisCpuUsPerPush: 50 } },
      ]),
      resultOf('durable-publish', [
        { labels: { replicas: 1, batch: 1 }, figures: { cpuUsPerPublish: 80, natsCpuUsPerPublish: 20 } },
        { labels: { replicas: 1, batch: 100 }, figures: { cpuUsPerPublish: 9, natsCpuUsPerPublish: 12 } },
        { labels: { replicas: 3, batch: 1 }, figures: { cpuUsPerPublish: 85, natsCpuUsPerPublish: 70 } },
        { labels: { replicas: 3, batch: 100 }, figures: { cpuUsPerPublish: 10, natsCpuUsPerPublish: 50 } },
        { labels: { replicas: 3, batch: 1000 }, figures: { cpuUsPerPublish: 8, natsCpuUsPerPublish: 50 } },
      ]),
      resultOf('redis-memory', [
        { labels: { what: 'online user' }, figures: { redisBytesPerUser: 300 } },
        { labels: { what: 'online user with a device name' }, figures: { redisBytesPerUser: 310 } },
        { labels: { what: 'push that waits, 10 for a user' }, figures: { redisBytesPerQueued: 200 } },
      ]),
    ].map((result) => ({ file: `${result.scenario}.json`, result }));
    const { costs } = costsFrom(known, files);
    const values = Object.fromEntries(Object.entries(costs).map(([name, { value }]) => [name, value]));
    expect(values).toMatchObject({
      sessionBytes: 3400 - 2 * 200, // two topics more than the two of the cost
      sessionUsPerSec: 2,
      nodeBaseBytes: 28e6,
      hostedTopicBytes: 2800,
      pushUs: 120,
      redisPushUs: 50,
      publishUs: 85,
      publishBatchedUs: 9,
      natsPublishUs: 20,
      natsPublishReplicatedUs: 70,
      redisUserBytes: 310,
      redisQueuedBytes: 200,
    });
  });

  it('believes the newest sound run, and never learns from mixed', () => {
    const of = (cpuUsPerHandshake: number, changed: Partial<BenchResult>) =>
      resultOf('connect', [{ labels: { engine: 'cluster' }, figures: { cpuUsPerHandshake } }], changed);
    const files = [
      { file: 'new.json', result: of(100, { startedAt: '2026-03-01T00:00:00.000Z' }) },
      { file: 'old.json', result: of(300, { startedAt: '2026-02-01T00:00:00.000Z' }) },
      { file: 'bad.json', result: of(1, { startedAt: '2026-04-01T00:00:00.000Z', faults: ['3 lost'] }) },
      { file: 'mixed.json', result: resultOf('mixed', [{ labels: {}, figures: { cpuUsPerDelivery: 1 } }]) },
      { file: 'storm.json', result: resultOf('storm', []) },
    ];
    const { costs, left } = costsFrom(known, files);
    expect(costs.handshakeUs.value).toBe(100);
    expect([...left].sort()).toEqual([
      'bad.json: the run has failed (3 lost)',
      'mixed.json: plans are checked against mixed (--check), not made from it',
      'storm.json: no row of storm tells a cost',
    ]);
  });

  it('leaves out what makes no sense', () => {
    const idle = resultOf('idle', [
      {
        labels: { engine: 'cluster', topics: 2, nodes: 1 },
        figures: { sockets: 10, rssBytesPerSession: -5 },
      },
    ]);
    expect(costsFrom(known, [{ file: 'idle.json', result: idle }]).costs.sessionBytes).toBe(
      known.sessionBytes,
    );
  });
});

describe('a file of costs', () => {
  it('is read as it was written', () => {
    expect(parseCosts(formatCosts(shippedCosts()))).toEqual(shippedCosts());
  });

  it('is refused when something is missing, negative or unknown', () => {
    const { pushUs, ...rest } = shippedCosts();
    const text = (costs: unknown): string => JSON.stringify({ format: 1, costs });
    expect(() => parseCosts('{')).toThrow('not JSON');
    expect(() => parseCosts(text(rest))).toThrow('pushUs');
    expect(() => parseCosts(text({ ...rest, pushUs: { ...pushUs, value: -1 } }))).toThrow('pushUs');
    expect(() => parseCosts(text({ ...rest, pushUs, other: pushUs }))).toThrow('other');
  });
});

describe('a check against mixed', () => {
  const settings = {
    users: 1000,
    nodes: 2,
    topics: 10,
    topicsPerUser: 2,
    zipf: 0,
    rate: 100,
    bytes: 100,
    codec: 'json',
    delivery: 'durable',
  };
  const row: ResultRow = {
    labels: { delivery: 'durable', codec: 'json', nodes: 2 },
    figures: {
      sockets: 1000,
      deliveriesPerSec: 16_000,
      serverCpuShare: 0.05,
      rssBytesPerSession: 2000,
      redisCommandsPerMessage: 0,
      natsOutPerMessage: 1.25,
    },
  };

  it('says what would have been predicted, and by how much that is off', () => {
    const result = resultOf('mixed', [row], { settings });
    const checked = checkMixed(parseMixed(JSON.stringify(result)), known, 1);
    const of = (figure: string) => checked.find((one) => one.figure === figure);
    // 100 messages/s × 200 subscribers, 25 % more than the 16,000.
    expect(of('deliveriesPerSec')?.predicted).toBeCloseTo(20_000, 6);
    expect(of('deliveriesPerSec')?.error).toBeCloseTo(0.25, 9);
    expect(of('natsOutPerMessage')?.error).toBeCloseTo(-0.2, 9);
    // 2,500 B and 500 sessions' share of ten topics of 3,000 B.
    expect(of('rssBytesPerSession')?.predicted).toBeCloseTo(2500 + 60, 6);
    expect(of('redisCommandsPerMessage')).toMatchObject({ predicted: 0, measured: 0, error: undefined });
    // Not measured, so not compared.
    expect(of('p99Ms')).toBeUndefined();
    // A session gets 20/s, 0.1 in 5 ms: 0.1 / (1 - e^-0.1) = 1.0508 a write, 1.1 + 3 / 1.0508 = 3.955 µs for each of 20,000 deliveries. Both nodes host
    // 100 messages × 15 µs, and wake up for them and half a beacon × 100 µs; they take 0.01 by themselves, 1,000 sessions × 1 µs, and little for beacons.
    const nodes = 0.0791 + 2 * (0.0015 + 0.01005 + 0.01) + 0.001 + (2 * 0.5 * 10) / 1e6;
    // One of them takes all publishes: 100 × (20 + 200) µs. To it come 200.5 things a second, for which it wakes up 200 times.
    const shared = (0.5 / 200.5) * (0.01005 + 0.02);
    expect(of('serverCpuShare')?.predicted).toBeCloseTo(nodes + 0.022 - shared, 5);
  });

  it.each([
    [resultOf('fanout', [row]), 'the result of fanout, not of mixed'],
    [resultOf('mixed', [row], { settings, faults: ['3 lost'] }), 'the run has failed: 3 lost'],
    [resultOf('mixed', [], { settings, doubts: ['busy client'] }), 'it has no row: busy client'],
    [resultOf('mixed', [row]), 'its settings lack users'],
    [resultOf('mixed', [row], { settings: { ...settings, nodes: 0 } }), 'its setting nodes'],
  ])('refuses another result', (result, message) => {
    expect(() => checkMixed(parseMixed(JSON.stringify(result)), shippedCosts(), 1)).toThrow(message);
  });
});
