import {
  choice,
  decimal,
  OptionError,
  whole,
  type OptionSpec,
  type OptionValues,
} from '../scenarios/options.js';

/** Everything that a plan is made from but the costs. Rates are those of the busiest hour, unless they say otherwise. */
export const inputSpecs = {
  users: whole('online at the same time', 1_000_000, 1, 1e10),
  sessionsPerUser: decimal('connections of a user', 1, 1, 100),
  topics: whole('in all', 20_000, 1, 1e10),
  topicsPerUser: whole('that each user subscribes to', 8, 1, 512),
  zipf: decimal('exponent of popularity among subscribers; 0: all topics alike', 0.7, 0, 5),
  publishZipf: decimal('exponent of popularity among publishers; 0: each topic as often', 0.7, 0, 5),
  messagesPerS: decimal('messages a second over all topics', 1000, 0, 1e9),
  averageShare: decimal('messages a second averaged over a week, as a share of the peak', 0.4, 0, 1),
  bytes: whole('of the payload of one message', 200, 1, 8_388_608),
  topicBytes: whole('of the name of a topic', 16, 6, 200),
  codec: choice('of the clients', ['json', 'msgpack'], 'json'),
  durableShare: decimal('share of the messages on durable topics', 1, 0, 1),
  durableNamespaces: whole('that share the durable topics; each is one stream', 2, 1, 1000),
  publishVia: choice('how back ends publish', ['http', 'ws', 'nats'], 'http'),
  publishBatch: whole('messages of one HTTP request', 1, 1, 1000),
  pushesPerDay: decimal('pushes to single users a day', 30_000_000, 0, 1e13),
  pushPeak: decimal('pushes a second at the peak over those of the mean', 3, 1, 100),
  pushBytes: whole('of the payload of a push', 200, 1, 262_144),
  offlineShare: decimal('share of the pushes whose user is away', 0.3, 0, 1),
  queueDays: decimal('how long such a push waits, in days', 1, 0, 7),
  sessionMinutes: decimal('how long a connection lives, on average', 30, 0.1, 100_000),
  connectRate: decimal(
    'TOPICAST_CONNECT_RATE: connections let in a second; 0: 5000, or twice what comes and goes',
    0,
    0,
    1e7,
  ),
  stormShare: decimal(
    'share of the sessions that come back at once, and of the nodes that are gone; 1: no node is gone',
    0.1,
    0.0001,
    1,
  ),
  loss: choice('how clients notice that their node is gone', ['cut', 'silent'], 'cut'),
  pingSec: decimal('TOPICAST_PING_SEC', 30, 1, 600),
  ringMessages: whole('TOPICAST_RING_MESSAGES', 128, 1, 100_000),
  historyMax: whole('messages of a topic that are stored', 1000, 1, 1_000_000),
  historySec: whole('seconds for which they are stored', 604_800, 60, 315_360_000),
  cpuTarget: decimal('share of a core that a node may use', 0.6, 0.01, 1),
  lostNodes: whole('nodes that may be away at once', 1, 0, 10_000),
  lossCpuTarget: decimal('share of a core that a node may use then, with a storm', 0.85, 0.01, 1),
  fileDescriptors: whole('of a node (ulimit -n); 100 are for itself', 65_536, 200, 1e9),
  nodeMemoryGb: decimal('that a node may use', 4, 0.1, 10_000),
  coresPerMachine: whole('nodes on a machine: one a core', 8, 1, 1024),
  networkGbit: decimal('of a machine', 10, 0.1, 1000),
  natsServers: whole('at least', 3, 1, 1000),
  natsReplicas: whole('copies of a stored message', 3, 1, 5),
  natsCores: whole('of a NATS server', 4, 1, 256),
  natsCpuTarget: decimal('share of its cores that a NATS server may use', 0.5, 0.01, 1),
  redisMasters: whole('at least', 3, 1, 1000),
  redisReplicas: whole('of each master', 1, 0, 5),
  redisMasterGb: decimal('maxmemory of a master', 8, 0.1, 10_000),
  redisHeadroom: decimal('share of it that stays free at the peak', 0.5, 0, 0.95),
  redisCpuTarget: decimal('share of a core that a master may use', 0.5, 0.01, 1),
};

export type PlanInputs = OptionValues<typeof inputSpecs>;
export type InputName = keyof PlanInputs;

export const inputNames = Object.keys(inputSpecs) as readonly InputName[];

/** What was asked for cannot be planned: the message names the input and what it has to be. */
export class PlanInputError extends Error {}

/** An input with where its value is from. */
export interface GivenInputs {
  readonly inputs: PlanInputs;
  readonly from: Readonly<Record<InputName, 'default' | 'file' | 'flag'>>;
}

/**
 * @param file the object of a JSON file, unchecked
 * @param flags by key, as text
 * @throws PlanInputError that names what is wrong
 */
export function readInputs(
  file: unknown,
  flags: Readonly<Partial<Record<InputName, string>>>,
  fileName = 'the file',
): GivenInputs {
  const stored = fileValues(file, fileName);
  const values: Record<string, unknown> = {};
  const from = {} as Record<InputName, 'default' | 'file' | 'flag'>;
  for (const name of inputNames) {
    const [flag, own] = [flags[name], stored[name]];
    const spec: OptionSpec<string | number> = inputSpecs[name];
    from[name] = flag !== undefined ? 'flag' : own !== undefined ? 'file' : 'default';
    values[name] = spec.fallback;
    if (own !== undefined) values[name] = fileValue(own, spec, `${fileName}: ${name}`);
    if (flag !== undefined) values[name] = parsed(spec, flag, name);
  }
  // Every key of the specs was given a value of its spec.
  const inputs = values as PlanInputs;
  if (inputs.natsReplicas % 2 === 0) {
    throw new PlanInputError(
      'natsReplicas: Expected 1, 3 or 5: an even number of copies survives no more failures.',
    );
  }
  if (inputs.topicsPerUser > inputs.topics && from.topicsPerUser !== 'default') {
    throw new PlanInputError(
      `topicsPerUser: Expected at most ${inputs.topics}, as there are no more topics (topics).`,
    );
  }
  return { inputs, from };
}

/** @throws PlanInputError unless the text is a value of the input */
export function readInput(name: InputName, text: string): string | number {
  return parsed(inputSpecs[name], text, name);
}

export function isInputName(name: string): name is InputName {
  return Object.hasOwn(inputSpecs, name);
}

function fileValues(file: unknown, fileName: string): Readonly<Record<string, unknown>> {
  if (file === undefined) return {};
  if (typeof file !== 'object' || file === null || Array.isArray(file)) {
    throw new PlanInputError(`${fileName}: expected an object of inputs`);
  }
  const unknown = Object.keys(file).filter((key) => !isInputName(key));
  if (unknown.length > 0) {
    throw new PlanInputError(
      `${fileName}: unknown ${unknown.join(', ')}; there are ${inputNames.join(', ')}`,
    );
  }
  return file as Readonly<Record<string, unknown>>;
}

function fileValue(value: unknown, spec: OptionSpec<string | number>, label: string): string | number {
  if (typeof value !== typeof spec.fallback) {
    throw new PlanInputError(`${label}: Expected a ${typeof spec.fallback}.`);
  }
  return parsed(spec, String(value), label);
}

function parsed(spec: OptionSpec<string | number>, text: string, label: string): string | number {
  try {
    return spec.parse(text);
  } catch (error) {
    if (error instanceof OptionError) throw new PlanInputError(`${label}: ${error.message}`);
    throw error;
  }
}
