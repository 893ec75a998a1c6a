/** What a figure is called where people read it, and how it is printed. */
export interface Figure {
  readonly title: string;
  /** '' for a ratio or a count. */
  // '%': the value is a share, 0 to 1, and shown times 100.
  readonly unit: '' | 'µs' | 'ms' | 's' | 'B' | 'MB' | '%' | '/s';
  readonly digits: number;
  /** Which way is good; a figure without says nothing about speed. */
  readonly better?: 'less' | 'more';
}

/**
 * Every figure that a scenario may report, by the name it has in the JSON. The report and the planner know them by these names, so one that has
 * been published does not change its meaning or unit.
 */
export const figures = {
  sockets: { title: 'sockets', unit: '', digits: 0 },
  messages: { title: 'messages', unit: '', digits: 0 },
  deliveries: { title: 'deliveries', unit: '', digits: 0 },
  deliveriesPerSec: { title: 'deliveries', unit: '/s', digits: 0, better: 'more' },
  messagesPerSec: { title: 'messages', unit: '/s', digits: 0, better: 'more' },
  messagesPerRead: { title: 'messages a read', unit: '', digits: 2 },
  lost: { title: 'lost', unit: '', digits: 0, better: 'less' },
  doubled: { title: 'twice', unit: '', digits: 0, better: 'less' },
  disorder: { title: 'out of order', unit: '', digits: 0, better: 'less' },
  cpuUsPerDelivery: { title: 'server CPU a delivery', unit: 'µs', digits: 2, better: 'less' },
  ratioToBare: { title: 'against bare µWS', unit: '', digits: 2, better: 'less' },
  p50Ms: { title: 'p50', unit: 'ms', digits: 2, better: 'less' },
  p99Ms: { title: 'p99', unit: 'ms', digits: 2, better: 'less' },
  maxMs: { title: 'max', unit: 'ms', digits: 2, better: 'less' },
  serverCpuShare: { title: 'server CPU', unit: '%', digits: 0 },
  clientCpuShare: { title: 'busiest client CPU', unit: '%', digits: 0 },
  seconds: { title: 'time', unit: 's', digits: 2, better: 'less' },
  idealSeconds: { title: 'at the full rate', unit: 's', digits: 2 },
  rssBytesPerSession: { title: 'memory a session', unit: 'B', digits: 0, better: 'less' },
  rssBytesPerSocket: { title: 'memory a socket', unit: 'B', digits: 0, better: 'less' },
  heapBytesPerSession: { title: 'heap a session', unit: 'B', digits: 0, better: 'less' },
  heapBytesPerTopic: { title: 'heap a hosted topic', unit: 'B', digits: 0, better: 'less' },
  rssBytesPerTopic: { title: 'memory a hosted topic', unit: 'B', digits: 0, better: 'less' },
  serverRssMb: { title: 'server memory', unit: 'MB', digits: 0, better: 'less' },
  handshakesPerSec: { title: 'handshakes', unit: '/s', digits: 0, better: 'more' },
  cpuUsPerHandshake: { title: 'server CPU a handshake', unit: 'µs', digits: 0, better: 'less' },
  refused: { title: 'told to come later', unit: '', digits: 0 },
  publishesPerSec: { title: 'publishes', unit: '/s', digits: 0, better: 'more' },
  cpuUsPerPublish: { title: 'node CPU a publish', unit: 'µs', digits: 1, better: 'less' },
  cpuUsPerMessage: { title: 'node CPU a message', unit: 'µs', digits: 1, better: 'less' },
  quietCpuShare: { title: 'CPU of a node without messages', unit: '%', digits: 2 },
  natsCpuUsPerPublish: { title: 'NATS CPU a publish', unit: 'µs', digits: 1, better: 'less' },
  natsCpuUsPerMessage: { title: 'NATS CPU a message', unit: 'µs', digits: 1, better: 'less' },
  natsInPerMessage: { title: 'NATS messages in, a message', unit: '', digits: 2, better: 'less' },
  natsOutPerMessage: {
    title: 'NATS messages out, a message and hosting node',
    unit: '',
    digits: 2,
    better: 'less',
  },
  natsSubscriptions: { title: 'NATS subscriptions', unit: '', digits: 0 },
  jetStreamRequestsPerTopic: {
    title: 'JetStream reads a topic and node',
    unit: '',
    digits: 2,
    better: 'less',
  },
  redisCommandsPerMessage: { title: 'Redis commands a message', unit: '', digits: 3, better: 'less' },
  redisCallsPerConnect: { title: 'Redis calls a connect', unit: '', digits: 2, better: 'less' },
  redisCpuUsPerConnect: { title: 'Redis CPU a connect', unit: 'µs', digits: 1, better: 'less' },
  redisBytesPerUser: { title: 'Redis memory a user', unit: 'B', digits: 0, better: 'less' },
  kernelBytesPerSocket: { title: 'kernel memory a connection', unit: 'B', digits: 0, better: 'less' },
  clientBytesPerSocket: { title: 'client memory a socket', unit: 'B', digits: 0, better: 'less' },
  availableMb: { title: 'memory left', unit: 'MB', digits: 0 },
  redisCpuShare: { title: 'Redis CPU', unit: '%', digits: 0 },
  clientCpuShareAll: { title: 'CPU of all clients', unit: '%', digits: 0 },
  redisBytesPerQueued: { title: 'Redis memory a queued push', unit: 'B', digits: 0, better: 'less' },
  pushesPerSec: { title: 'pushes', unit: '/s', digits: 0, better: 'more' },
  cpuUsPerPush: { title: 'node CPU a push', unit: 'µs', digits: 1, better: 'less' },
  redisCpuUsPerPush: { title: 'Redis CPU a push', unit: 'µs', digits: 1, better: 'less' },
} as const satisfies Record<string, Figure>;

export type FigureName = keyof typeof figures;

export const figureNames = Object.keys(figures) as readonly FigureName[];
