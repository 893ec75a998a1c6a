import { describe, expect, it } from 'vitest';
import type { FleetMeasure } from '../../bench/fleet/fleet.js';
import { sumStates } from '../../bench/fleet/fleet-state.js';
import { Latencies } from '../../bench/fleet/latencies.js';
import { withContext } from '../../bench/scenarios/context.js';
import {
  clientDoubt,
  deliveryFaults,
  expectedDeliveries,
  type DeliveryRun,
} from '../../bench/scenarios/delivery.js';
import { subjectNames } from '../../bench/floor/subjects.js';
import { summarise, type FanoutRun } from '../../bench/scenarios/fanout.js';
import { scenarios } from '../../bench/scenarios/index.js';
import { lossFigures } from '../../bench/scenarios/compare.js';
import { choices, flagOf, whole, wholes } from '../../bench/scenarios/options.js';
import { createProgress } from '../../bench/scenarios/progress.js';

const nothing = { say: () => undefined, bar: () => undefined, done: () => undefined };

describe('what is due', () => {
  const groups = [['a', 'b'], ['b'], ['c']];

  it('follows from who subscribes to what', () => {
    // 7 sockets: three of the first group, two of each other.
    const expected = expectedDeliveries(groups, 7, ['a', 'b', 'c', 'nobody']);
    expect([0, 1, 2, 3, 4, 5, 40].map(expected)).toEqual([0, 3, 8, 10, 10, 13, 100]);
  });
});

describe('the verdict on a run', () => {
  const clients: FleetMeasure = {
    state: sumStates([]),
    seconds: 1,
    latencies: new Latencies(),
    handshakes: new Latencies(),
    cpuShares: [0.2],
    cpuShareMax: 0.2,
    cpuSec: 0.2,
    messagesPerRead: 1,
  };
  const run: DeliveryRun = {
    clients,
    deliveries: 100,
    due: 100,
    seconds: 1,
    serverCpuSec: 0.5,
    clientShareMax: 0.2,
    refused: [],
  };
  const withState = (state: Partial<FleetMeasure['state']>): Partial<DeliveryRun> => ({
    clients: { ...clients, state: { ...clients.state, ...state } },
  });

  it.each<[string, Partial<DeliveryRun>]>([
    ['lost', { deliveries: 99 }],
    ['too many', { deliveries: 101 }],
    ['refused', { refused: ['no'] }],
    ['a hole', withState({ lost: 1 })],
    ['a repeat', withState({ doubled: 1 })],
    ['disorder', withState({ disorder: 1 })],
    ['foreign', withState({ foreign: 1 })],
    ['a gap', withState({ gaps: 1 })],
    ['not recovered', withState({ notRecovered: 1 })],
    ['fell behind', withState({ resyncs: 1 })],
    ['closed', withState({ closed: { 1006: 3 } })],
    ['said', withState({ faults: ['a frame cannot be read'] })],
  ])('finds fault with %s', (_name, change) => {
    expect(deliveryFaults('x', run)).toEqual([]);
    expect(deliveryFaults('x', { ...run, ...change })).toHaveLength(1);
  });

  it('doubts a run whose client was busy', () => {
    expect(clientDoubt('x', 0.8)).toBeUndefined();
    expect(clientDoubt('x', 0.81)).toContain('81 % of a core');
  });
});

describe('what a peer has lost', () => {
  const runWith = (deliveries: number, state: Partial<FleetMeasure['state']>) =>
    lossFigures({ deliveries, due: 100, clients: { state: { ...sumStates([]), ...state } } });

  it('is what was due and did not come, and never less than nothing', () => {
    expect(runWith(100, {})).toEqual({ lost: 0, doubled: 0, disorder: 0 });
    expect(runWith(93, { lost: 5, disorder: 1 })).toEqual({ lost: 7, doubled: 0, disorder: 1 });
    expect(runWith(102, { doubled: 2 })).toEqual({ lost: 0, doubled: 2, disorder: 0 });
  });
});

describe('the rows of fanout', () => {
  const bare: FanoutRun = {
    subject: 'bare',
    figures: { cpuUsPerDelivery: 2, maxMs: 4 },
    latencies: '',
    faults: [],
  };
  const node: FanoutRun = { ...bare, subject: 'node-live', figures: { cpuUsPerDelivery: 3, maxMs: 5 } };
  const slow = [
    { ...bare, figures: { cpuUsPerDelivery: 10, maxMs: 9 } },
    { ...node, figures: { cpuUsPerDelivery: 15, maxMs: 1 } },
  ];

  it('compares within a round, so that a slow round does not count against one server', () => {
    const [, row] = summarise([[bare, node], slow, [bare, node]], { sockets: 10 }, subjectNames);
    expect(row?.labels).toEqual({ subject: 'node-live', sockets: 10 });
    expect(row?.figures).toEqual({ cpuUsPerDelivery: 3, maxMs: 5, ratioToBare: 1.5 });
  });

  it('leaves out what is in doubt, and a server of which nothing else is left', () => {
    const doubted = { ...node, doubt: 'busy', figures: { cpuUsPerDelivery: 300 } };
    expect(summarise([[bare, doubted]], {}, subjectNames).map((row) => row.labels['subject'])).toEqual([
      'bare',
    ]);
    expect(summarise([[bare, doubted], slow], {}, subjectNames)[1]?.figures.cpuUsPerDelivery).toBe(15);
    expect(
      summarise([[{ ...bare, doubt: 'busy' }, node]], {}, subjectNames)[0]?.figures.ratioToBare,
    ).toBeUndefined();
  });
});

describe('options', () => {
  it('are read and refused by what they say of themselves', () => {
    expect(whole('x', 1, 0, 9).parse('9')).toBe(9);
    for (const text of ['10', '-1', '1.5', '', 'a']) {
      expect(() => whole('x', 1, 0, 9).parse(text)).toThrow('from 0 to 9');
    }
    expect(wholes('x', [1], 1, 500).parse('10,500')).toEqual([10, 500]);
    expect(choices('x', ['a', 'b'], ['a']).parse('b,a')).toEqual(['b', 'a']);
    expect(() => choices('x', ['a', 'b'], ['a']).parse('c')).toThrow('a, b');
    expect(flagOf('warmUpSec')).toBe('--warm-up-sec');
  });

  it('of every scenario have a default that they would read', () => {
    expect(new Set(scenarios.map(({ name }) => name)).size).toBe(scenarios.length);
    for (const scenario of scenarios) {
      for (const [key, option] of Object.entries(scenario.options)) {
        if (option.argument === '' || option.fallback === '') continue;
        expect(option.parse(String(option.fallback)), `${scenario.name} ${key}`).toEqual(option.fallback);
      }
    }
  });
});

describe('the context of a run', () => {
  it('undoes what was done, the last first, also when the run fails', async () => {
    const undone: string[] = [];
    const run = withContext({ signal: new AbortController().signal, progress: nothing }, async (context) => {
      context.defer(() => void undone.push('outer'));
      await context.scope(async (inner) => inner.defer(() => void undone.push('inner')));
      context.defer(() => void undone.push('last'));
      throw new Error('off');
    });
    await expect(run).rejects.toThrow('off');
    expect(undone).toEqual(['inner', 'last', 'outer']);
  });

  it('ends with the signal, whatever the run waits for', async () => {
    const stopping = new AbortController();
    let undone = false;
    const run = withContext({ signal: stopping.signal, progress: nothing }, (context) => {
      context.defer(() => void (undone = true));
      stopping.abort(new Error('interrupted'));
      return new Promise<never>(() => undefined);
    });
    await expect(run).rejects.toThrow('interrupted');
    expect(undone).toBe(true);
  });
});

describe('progress', () => {
  it('is a bar in a terminal and a line now and then elsewhere', () => {
    let terminal = '';
    const bar = createProgress({ isTTY: true, write: (text: string) => (terminal += text) });
    bar.bar('open', 500, 1000);
    bar.say('done');
    expect(terminal).toMatch(/█{15}░{15} open 500 of 1,000/);
    expect(terminal.endsWith('\x1b[Kdone\n')).toBe(true);

    let ms = 0;
    let plain = '';
    const lines = createProgress({ write: (text: string) => (plain += text) }, () => ms);
    for (; ms <= 12_000; ms += 250) lines.bar('open', ms, 20_000);
    expect(plain).toBe('open 5,000 of 20,000\nopen 10,000 of 20,000\n');
  });
});
