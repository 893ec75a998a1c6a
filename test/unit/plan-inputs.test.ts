import { describe, expect, it } from 'vitest';
import { formatCosts, shippedCosts } from '../../bench/plan/costs.js';
import { inputNames, inputSpecs, PlanInputError, readInputs } from '../../bench/plan/inputs.js';
import { planPage } from '../../bench/plan/html.js';
import { shown } from '../../bench/plan/rows.js';
import { answer } from '../../bench/plan/session.js';
import { parseWhatIf, runWhatIf } from '../../bench/plan/what-if.js';
import { loadCharts } from '../../bench/report/chart.js';

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
    [{ topics: 5, topicsPerUser: 8 }, 'topicsPerUser: Expected at most 5'],
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
