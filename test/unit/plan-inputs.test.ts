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
import { inputNames, inputSpecs, PlanInputError, readInputs } from '../../bench/plan/inputs.js';
import { planPage } from '../../bench/plan/html.js';
import { shown } from '../../bench/plan/rows.js';
import { answer } from '../../bench/plan/session.js';
import { parseWhatIf, runWhatIf } from '../../bench/plan/what-if.js';
import { loadCharts } from '../../bench/report/chart.js';
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

describe('inputs', () => {
  it('are the defaults, then the file, then the flags', () => {
    const { from, inputs } = readInputs({ users: 5000, bytes: 10 }, { users: '7000' });
    expect(inputs).toMatchObject({ users: 7000, bytes: 10, topicsPerUser: 8 });
    expect(from).toMatchObject({ users: 'flag', bytes: 'file', topicsPerUser: 'default' });
  });

  it('have defaults that they accept themselves', () => {
    const all = Object.fromEntries(inputNames.map((name) => [name, inputSpecs[name].fallback]));
    expect(readInputs(all, {}).inputs).toEqual(readInputs(undefined, {}).inputs);
  });

  it.each([
    [{ users: -1 }, 'launch.json: users: Expected a whole number'],
    [{ users: 1.5 }, 'launch.json: users: Expected a whole number'],
    [{ users: '1000' }, 'launch.json: users: Expected a number.'],
    [{ users: null }, 'launch.json: users: Expected a number.'],
    [{ codec: 'xml' }, 'launch.json: codec: Expected json, msgpack.'],
    [{ cpuTarget: 1.2 }, 'launch.json: cpuTarget: Expected a number from 0.01 to 1.'],
    [{ natsReplicas: 2 }, 'natsReplicas: Expected 1, 3 or 5'],
    [{ user: 1000 }, 'launch.json: unknown user; there are users,'],
    [{ toString: 1 }, 'launch.json: unknown toString'],
    [[], 'launch.json: expected an object'],
    [7, 'launch.json: expected an object'],
    [null, 'launch.json: expected an object'],
  ])('refuse the file %j', (file, message) => {
    expect(() => readInputs(file, {}, 'launch.json')).toThrow(PlanInputError);
    expect(() => readInputs(file, {}, 'launch.json')).toThrow(message);
  });

  it.each(['-5', 'NaN', 'Infinity', '', ' ', '1e400', 'many', '0'])('refuse the flag --users %j', (users) => {
    expect(() => readInputs(undefined, { users })).toThrow('users: Expected a whole number');
  });

  it.each(['-0.1', 'NaN', 'Infinity', ''])('refuse the flag --messages-per-s %j', (messagesPerS) => {
    expect(() => readInputs(undefined, { messagesPerS })).toThrow('messagesPerS: Expected a number');
  });
});

describe('what if', () => {
  it('goes through a near range by equal distances and a far one by equal factors', () => {
    expect(parseWhatIf('topicsPerUser=2..10:5')).toEqual({
      input: 'topicsPerUser',
      values: [2, 4, 6, 8, 10],
    });
    expect(parseWhatIf('users=1000..1000000:4').values).toEqual([1000, 10_000, 100_000, 1_000_000]);
    expect(parseWhatIf('cpuTarget=0.2..0.6:3').values).toEqual([0.2, 0.4, 0.6]);
    expect(parseWhatIf('durableShare=0..1:3').values).toEqual([0, 0.5, 1]);
    // Each whole number once.
    expect(parseWhatIf('lostNodes=0..2:9').values).toEqual([0, 1, 2]);
    expect(parseWhatIf('users=100000..5000000').values).toHaveLength(8);
  });

  it.each([
    ['users', 'Expected INPUT=FROM..TO'],
    ['users=5', 'Expected INPUT=FROM..TO'],
    ['nothing=1..2', 'there is no input nothing'],
    ['codec=json..msgpack', 'codec is no number'],
    ['users=9..5', 'Expected a range upwards'],
    ['users=1..x', 'Expected a whole number'],
    ['users=-1..5', 'Expected a whole number'],
    ['users=1..5:1', 'Expected 2 to 1000 steps'],
  ])('refuses %s', (text, message) => {
    expect(() => parseWhatIf(text)).toThrow(PlanInputError);
    expect(() => parseWhatIf(text)).toThrow(message);
  });

  it('plans each step, and says at which nothing is enough', () => {
    const { inputs } = readInputs({ topics: 1, topicsPerUser: 1 }, {});
    const { steps } = runWhatIf(inputs, shippedCosts(), parseWhatIf('messagesPerS=1..1000000:3'));
    const nodes = steps.map(({ rows }) => rows.find(({ key }) => key === 'nodes')?.value);
    expect(nodes[0]).toBeGreaterThan(0);
    expect(nodes[2]).toBeUndefined();
    expect(steps[2]?.fault).toContain('no number of nodes is enough');
  });
});

/** Round figures to reckon with, whatever is shipped. */
const example = (value: number): KnownCost => ({ value, basis: 'assumed', from: 'an example' });
const known: KnownCosts = {
  ...shippedCosts(),
  deliveryWriteUs: example(3),
  deliveryMessageUs: example(1.1),
  messageUs: example(15),
  sessionUsPerSec: example(1),
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
          // 2 % of a core for 10,000 sessions: 2 µs a second each. 90 MB less 10,000 × 3,400 B on two nodes.
          figures: { sockets: 10_000, rssBytesPerSession: 3400, serverCpuShare: 0.02, serverRssMb: 90 },
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
    expect(of('serverCpuShare')?.predicted).toBeGreaterThan(0.08); // 20,000 × 4 µs and more
    expect(of('serverCpuShare')?.predicted).toBeLessThan(0.1);
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

describe('figures for people', () => {
  it('have units that fit', () => {
    expect(shown({ unit: 'B', value: 1_234_567 })).toBe('1.23 MB');
    expect(shown({ unit: 'B', value: 999 })).toBe('999 B');
    expect(shown({ unit: 'bit/s', value: 2.5e10 })).toBe('25.0 Gbit/s');
    expect(shown({ unit: '%', value: 0.256 })).toBe('25.6 %');
    expect(shown({ unit: '/s', value: 1234.5 })).toBe('1,235 /s');
    expect(shown({ unit: '', value: 3 })).toBe('3');
  });
});

describe('the page', () => {
  it('holds charts, figures, inputs and costs, and no text that is not escaped', async () => {
    const costs = JSON.parse(formatCosts(shippedCosts())) as { costs: { pushUs: { from: string } } };
    costs.costs.pushUs.from = '<script>alert(1)</script>';
    const answered = answer({
      flags: { users: '200000' },
      costs: { name: 'costs.json', text: JSON.stringify(costs) },
      results: [],
      whatIf: 'users=1000..1000000:4',
      simulate: true,
      seed: 1,
    });
    const text = planPage(answered, await loadCharts());
    expect(text).toContain('nodes for 200,000 sessions');
    // Four of the plan, three of the simulation, six of the range.
    expect(text.match(/<figure/g)).toHaveLength(13);
    expect(text).not.toContain('<script');
    expect(text).not.toMatch(/NaN|undefined|Infinity/);
    expect(text).toContain('redisQueuedBytes');
  });
});
