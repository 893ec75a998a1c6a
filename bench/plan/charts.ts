import type { Charts } from '../report/chart.js';
import type { Html } from '../report/markup.js';
import type { Plan } from './plan.js';
import { shown, type PlanUnit } from './rows.js';
import type { Simulation } from './simulate.js';
import type { WhatIf } from './what-if.js';

export function planCharts(charts: Charts, plan: Plan): Html[] {
  return [
    nodesChart(charts, plan),
    cpuChart(charts, plan),
    memoryChart(charts, plan),
    redisChart(charts, plan),
  ];
}

export function simulationCharts(charts: Charts, { fanout, fanoutAfterLoss, storm }: Simulation): Html[] {
  const latency = charts.latency(
    'Latency on a node',
    [
      { name: 'all nodes', curve: fanout.curve },
      { name: 'after a loss', curve: fanoutAfterLoss.curve },
    ],
    'from the arrival of a message at the node to its write to a socket',
  );
  if (storm === undefined) return [latency];
  const { curve } = storm;
  const line = (title: string, name: string, of: (point: (typeof curve)[number]) => number): Html =>
    charts.lines({
      title,
      x: { title: 's after the loss', scale: 'linear' },
      y: { title: name, scale: 'linear' },
      series: [{ name, points: curve.map((point) => [point.sec, of(point)]), smoothed: true }],
    });
  return [
    latency,
    line('Sessions that are back after a storm', 'sessions', ({ back }) => back),
    line('Tries in a storm, those that are refused included', 'tries/s', ({ triesPerSec }) => triesPerSec),
  ];
}

/** A line for each figure that is worth one. */
export function whatIfCharts(charts: Charts, { input, steps }: WhatIf): Html[] {
  const first = steps[0]?.value ?? 0;
  const isFar = first > 0 && (steps.at(-1)?.value ?? 0) / first >= 10;
  const isCut = steps.some(({ fault }) => fault !== undefined);
  return whatIfFigures.map(([key, title, unit, divisor]) => {
    const points = steps.flatMap(({ rows, value }) => {
      const figure = rows.find((row) => row.key === key)?.value;
      return figure === undefined ? [] : [[value, figure / divisor] as const];
    });
    return charts.lines({
      title: `${title} by ${input}`,
      ...(isCut ? { note: 'where the line ends no number of servers is enough' } : {}),
      x: { title: input, scale: isFar ? 'log' : 'linear' },
      y: { title: unit, scale: 'linear' },
      series: [{ name: title, points }],
    });
  });
}

const whatIfFigures = [
  ['nodes', 'Nodes', 'nodes', 1],
  ['memory', 'Memory of all nodes', 'GB', 1e9],
  ['network', 'Network to clients', 'Gbit/s', 1e9],
  ['redisMemory', 'Memory of Redis', 'GB', 1e9],
  ['natsOut', 'NATS messages out', 'thousands/s', 1e3],
  ['stormSeconds', 'Storm, at least', 's', 1],
] as const;

function nodesChart(charts: Charts, { sizing }: Plan): Html {
  return charts.bars({
    title: 'What asks for how many nodes',
    note: `${sizing.bound} decides`,
    groups: Object.entries(sizing.wanted).map(([name, nodes]) => ({ name, bars: [bar('', nodes)] })),
    series: ['nodes'],
  });
}

function cpuChart(charts: Charts, { load, loadAfterLoss, model }: Plan): Html {
  const { cpuTarget, lossCpuTarget } = model.inputs;
  return stacked(charts, '%', {
    title: 'CPU of a node, of one core',
    note: `at most ${shown({ unit: '%', value: cpuTarget })}; after a loss, with a storm, ${shown({ unit: '%', value: lossCpuTarget })}`,
    parts: Object.keys(load.cpu),
    groups: [
      ['all nodes', Object.values<number>({ ...load.cpu })],
      ['after a loss', Object.values<number>({ ...loadAfterLoss.cpu })],
    ],
  });
}

function memoryChart(charts: Charts, { load, loadAfterLoss, model }: Plan): Html {
  const { hostedTopicBytes, nodeBaseBytes } = model.costs;
  const partsOf = ({ hostedTopics, memoryBytes, ringBytes }: Plan['load']): number[] => {
    const topics = hostedTopics * hostedTopicBytes;
    return [nodeBaseBytes, memoryBytes - nodeBaseBytes - topics - ringBytes, topics, ringBytes];
  };
  return stacked(charts, 'B', {
    title: 'Memory of a node',
    note: `at most ${model.inputs.nodeMemoryGb} GB after a loss`,
    parts: ['process', 'sessions', 'topics', 'rings'],
    groups: [
      ['all nodes', partsOf(load)],
      ['after a loss', partsOf(loadAfterLoss)],
    ],
  });
}

function redisChart(charts: Charts, { model, redis }: Plan): Html {
  const { redisHeadroom, redisMasterGb } = model.inputs;
  const users = redis.userBytes / (redis.userBytes + redis.queuedBytes);
  const used = redis.busiestMasterBytes;
  return stacked(charts, 'B', {
    title: 'Memory of the fullest Redis master',
    note: `one of ${redis.masters}; ${shown({ unit: '%', value: redisHeadroom })} have to stay free`,
    parts: ['users', 'pushes that wait', 'free'],
    groups: [['master', [used * users, used * (1 - users), redisMasterGb * 1e9 - used]]],
  });
}

function stacked(
  charts: Charts,
  unit: PlanUnit,
  of: {
    readonly title: string;
    readonly note: string;
    readonly parts: readonly string[];
    readonly groups: readonly (readonly [name: string, values: readonly number[]])[];
  },
): Html {
  return charts.bars({
    title: of.title,
    note: of.note,
    series: of.parts,
    stacked: true,
    groups: of.groups.map(([name, values]) => ({ name, bars: values.map((value) => bar(unit, value)) })),
  });
}

function bar(unit: PlanUnit, value: number): { readonly value: number; readonly text: string } {
  return { value, text: shown({ unit, value }) };
}
