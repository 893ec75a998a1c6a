import { inputNames, inputSpecs, type GivenInputs } from './inputs.js';
import type { Plan } from './plan.js';

export type PlanUnit = '' | '/s' | '%' | 's' | 'B' | 'bit/s' | 'cores' | 'µs';

/** One figure of a plan. `%`: a share, 0 to 1, shown times 100. */
export interface PlanRow {
  readonly part: string;
  /** In JSON and `--what-if`. */
  readonly key: string;
  readonly title: string;
  readonly value: number;
  readonly unit: PlanUnit;
  readonly note: string;
}

type Cells = readonly (readonly [key: string, title: string, value: number, unit: PlanUnit, note?: string])[];

/** Every figure of a plan, in the order in which people read them. */
export function planRows(plan: Plan): PlanRow[] {
  const parts: readonly (readonly [string, Cells])[] = [
    ['demand', demandCells(plan)],
    ['nodes', nodeCells(plan)],
    ['loss of nodes', lossCells(plan)],
    ['Redis', redisCells(plan)],
    ['NATS', natsCells(plan)],
    ['storm', stormCells(plan)],
  ];
  return parts.flatMap(([part, cells]) =>
    cells.map(([key, title, value, unit, note = '']) => ({ part, key, title, value, unit, note })),
  );
}

function demandCells({ demand }: Plan): Cells {
  return [
    ['sessions', 'sessions', demand.sessions, ''],
    ['messages', 'messages', demand.messages, '/s'],
    ['fanout', 'sessions that a message reaches', demand.fanout, ''],
    ['deliveries', 'deliveries', demand.deliveries, '/s'],
    ['batch', 'messages in a write to a socket', demand.batch, ''],
    ['deliveryUs', 'CPU of a delivery', demand.deliveryUs, 'µs'],
    ['pushes', 'pushes to single users', demand.pushes, '/s'],
    ['connects', 'connections that come and go', demand.connects, '/s'],
  ];
}

function nodeCells({ broadcastSeconds, load, machines, model, sizing }: Plan): Cells {
  const { nodes, wanted } = sizing;
  const { inputs } = model;
  const wants = Object.entries(wanted).map(([bound, count]) => `${bound} ${count}`);
  return [
    ['nodes', 'nodes', nodes, '', `for ${sizing.bound}; asked for: ${wants.join(', ')}`],
    ['machines', 'machines', machines, '', `of ${inputs.coresPerMachine} cores`],
    ['coresUsed', 'cores in use', nodes * load.cpuShare, 'cores'],
    ['cpuShare', 'CPU of a node', load.cpuShare, '%', cpuNote(load.cpu)],
    ['sessionsPerNode', 'sessions of a node', load.sessions, '', `${inputs.fileDescriptors} descriptors`],
    ['topicsPerNode', 'topics that a node hosts', load.hostedTopics, ''],
    ['messagesPerNode', 'messages that a node gets', load.messages, '/s'],
    ['memoryPerNode', 'memory of a node', load.memoryBytes, 'B', `${size(load.ringBytes)} of it rings`],
    ['memory', 'memory of all nodes', nodes * load.memoryBytes, 'B'],
    ['networkPerNode', 'network of a node, to clients', load.outBytes * 8, 'bit/s'],
    ['network', 'network of all nodes, to clients', nodes * load.outBytes * 8, 'bit/s'],
    ['broadcast', 'CPU time of a node for a message to everybody', broadcastSeconds, 's'],
  ];
}

function cpuNote(parts: Plan['load']['cpu']): string {
  return Object.entries<number>({ ...parts })
    .filter(([, share]) => share >= 0.001)
    .sort(([, a], [, b]) => b - a)
    .map(([name, share]) => `${name} ${(share * 100).toFixed(1)}`)
    .join(', ');
}

function lossCells({ loadAfterLoss, model, sizing }: Plan): Cells {
  const { fileDescriptors, lossCpuTarget, lostNodes, nodeMemoryGb } = model.inputs;
  return [
    ['nodesAfterLoss', 'nodes left', sizing.nodes - lostNodes, ''],
    [
      'cpuAfterLoss',
      'CPU of each, with a storm',
      loadAfterLoss.cpuShare,
      '%',
      `at most ${lossCpuTarget * 100}`,
    ],
    ['sessionsAfterLoss', 'sessions of each', loadAfterLoss.sessions, '', `at most ${fileDescriptors - 100}`],
    ['memoryAfterLoss', 'memory of each', loadAfterLoss.memoryBytes, 'B', `at most ${nodeMemoryGb} GB`],
  ];
}

function redisCells({ model, redis }: Plan): Cells {
  const { inputs } = model;
  return [
    ['redisUsers', 'data of users who are online', redis.userBytes, 'B'],
    ['redisQueued', 'pushes that wait', redis.queuedBytes, 'B', `${count(redis.queuedPushes)} pushes`],
    ['redisMasters', 'masters', redis.masters, '', `of ${inputs.redisMasterGb} GB`],
    ['redisReplicas', 'replicas', redis.replicas, ''],
    ['redisBusiest', 'data of the fullest master', redis.busiestMasterBytes, 'B'],
    ['redisHeadroom', 'headroom of it', redis.headroom, '%', `at least ${inputs.redisHeadroom * 100}`],
    ['redisMemory', 'memory of all servers', redis.serverBytes, 'B'],
    ['redisCommands', 'commands', redis.commandsPerSec, '/s', 'none for topic messages'],
    ['redisCpu', 'CPU of a master, with a storm', redis.cpuShare, '%'],
  ];
}

function natsCells({ model, nats }: Plan): Cells {
  const { natsCores, natsReplicas } = model.inputs;
  return [
    ['natsServers', 'servers', nats.servers, '', `of ${natsCores} cores; ${natsReplicas} copies of a stream`],
    ['natsIn', 'messages in', nats.in, '/s'],
    ['natsOut', 'messages out', nats.out, '/s'],
    ['nodesPerMessage', 'nodes that get a topic message', nats.nodesPerMessage, ''],
    ['natsBytes', 'network to nodes', nats.outBytes * 8, 'bit/s'],
    ['natsRoutes', 'network between servers', nats.routeBytes * 8, 'bit/s'],
    ['natsSubscriptions', 'subscriptions', nats.subscriptions, ''],
    ['natsCores', 'cores in use', nats.cpuCores, 'cores'],
    ['natsCpu', 'CPU of a server', nats.cpuShare, '%', 'of its cores'],
    ['natsMemory', 'memory of a server', nats.memoryBytes, 'B'],
    ['natsStored', 'messages in streams', nats.storedMessages, ''],
    ['natsDisk', 'disk of a server', nats.diskBytes, 'B'],
  ];
}

function stormCells({ demand, storm }: Plan): Cells {
  return [
    ['stormSessions', 'sessions that come back at once', storm.sessions, '', `to ${storm.survivors} nodes`],
    ['stormCapacity', 'connections that these could let in', storm.capacityPerSec, '/s'],
    [
      'stormRate',
      'connections that are let in',
      storm.perSec,
      '/s',
      `TOPICAST_CONNECT_RATE=${Math.round(demand.connectRate)}`,
    ],
    [
      'stormSeconds',
      'until all are back, at least',
      storm.seconds,
      's',
      '--simulate adds the waits of clients',
    ],
    ['resumeTopics', 'topics that are new to a node', storm.newTopics, ''],
    ['resumeReads', 'reads of streams, at most', storm.resumeReadsMax, ''],
    ['resumeSeconds', 'to read the new topics of a node', storm.readSeconds, 's'],
  ];
}

/** A value as people read it, unit included. */
export function shown({ unit, value }: Pick<PlanRow, 'unit' | 'value'>): string {
  switch (unit) {
    case '%':
      return `${(value * 100).toFixed(1)} %`;
    case 'B':
      return size(value);
    case 'bit/s':
      return scaled(value, ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s', 'Tbit/s']);
    case '':
      return count(value);
    case '/s':
      return `${count(value)} /s`;
    case 's':
    case 'µs':
    case 'cores':
      return `${count(value)} ${unit}`;
  }
}

function size(bytes: number): string {
  return scaled(bytes, ['B', 'KB', 'MB', 'GB', 'TB', 'PB']);
}

function scaled(value: number, units: readonly string[]): string {
  let at = 0;
  while (value >= 1000 && at < units.length - 1) {
    value /= 1000;
    at++;
  }
  return `${value.toFixed(at === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2)} ${units[at] ?? ''}`;
}

function count(value: number): string {
  const digits = value >= 100 || Number.isInteger(value) ? 0 : value >= 10 ? 1 : 2;
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** Every input with its flag and where its value is from. */
export function inputRows({ from, inputs }: GivenInputs): string[][] {
  return inputNames.map((name) => [name, String(inputs[name]), from[name], inputSpecs[name].help]);
}
