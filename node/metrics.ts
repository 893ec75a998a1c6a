import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client';
import { closeCodes, errorCodes, type ErrorCode } from '../protocol/codes.js';
import { clientFrameNumbers, type ClientFrameType } from '../protocol/frames.js';

/**
 * What a node counts. Plain numbers that the hot paths add to; they become Prometheus metrics only when somebody scrapes. Each only
 * grows.
 */
export interface Counters {
  connectionsOpened: number;
  /** Handshakes refused, by HTTP status. */
  readonly refused: Map<number, number>;
  /** Connections closed, by close code; see `countClose`. */
  readonly closed: Map<string, number>;
  readonly framesIn: Record<ClientFrameType, number>;
  readonly frameErrors: Record<ErrorCode, number>;
  /** Messages published through this node. */
  readonly published: Record<'live' | 'durable', number>;
  /** Messages of the bus that this node handed on to its sessions. */
  fannedOut: number;
  /** Messages times the subscribers they were for; what slow readers missed is in it. */
  deliveries: number;
  /** Direct messages: taken from publishers, handed to sockets, acknowledged by clients. */
  directPushed: number;
  directSent: number;
  directAcked: number;
  /** Messages that were fetched because this node had missed them, and gaps in which some were gone for good. */
  gapsRepaired: number;
  gapsLost: number;
  /** Connections told to subscribe again because they fell behind, and those closed because they stayed behind. */
  resyncs: number;
  slowCloses: number;
  /** Messages of the bus whose body does not parse. */
  bodiesDropped: number;
  /** Unexpected faults that ended a connection: each one is a bug. */
  faults: number;
}

export interface Metrics {
  readonly counters: Counters;
  /** Counts a close. Codes that the protocol does not know go under `other`: clients choose theirs freely. */
  countClose(code: number): void;
  /** Counts a refused handshake. */
  countRefused(status: number): void;
  /** Registers what is read at each scrape. `name` comes without the prefix, in Prometheus style; names are unique. */
  gauge(name: string, help: string, read: () => number): void;
  /** The same for what only grows. */
  counter(name: string, help: string, read: () => number): void;
  /** Everything, as Prometheus text. */
  render(): Promise<string>;
  /** The content type of what `render` gives. */
  readonly contentType: string;
}

const prefix = 'topicast_';
const webSocketCloseCodes = [1000, 1001, 1002, 1003, 1006, 1007, 1009, 1011];
const knownCloseCodes = new Set<number>([...webSocketCloseCodes, ...Object.values(closeCodes)]);

/** The metrics of one node, in a registry of their own; those of the process and its event loop are among them. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const counters = createCounters();
  registerCounters(registry, counters);
  return {
    counters,
    countClose: (code) => add(counters.closed, knownCloseCodes.has(code) ? String(code) : 'other'),
    countRefused: (status) => add(counters.refused, status),
    gauge(name, help, read) {
      const gauge: Gauge = new Gauge({
        name: prefix + name,
        help,
        registers: [registry],
        collect: () => gauge.set(read()),
      });
    },
    counter: (name, help, read) => plain(registry, name, help, read),
    render: () => registry.metrics(),
    contentType: registry.contentType,
  };
}

function createCounters(): Counters {
  return {
    connectionsOpened: 0,
    refused: new Map(),
    closed: new Map(),
    framesIn: zeros(Object.keys(clientFrameNumbers) as ClientFrameType[]),
    frameErrors: zeros(errorCodes),
    published: { live: 0, durable: 0 },
    fannedOut: 0,
    deliveries: 0,
    directPushed: 0,
    directSent: 0,
    directAcked: 0,
    gapsRepaired: 0,
    gapsLost: 0,
    resyncs: 0,
    slowCloses: 0,
    bodiesDropped: 0,
    faults: 0,
  };
}

function registerCounters(registry: Registry, c: Counters): void {
  const labelled = (name: string, help: string, label: string, read: () => Samples): void =>
    register(registry, name, help, [label], read);

  plain(registry, 'connections_opened_total', 'Connections accepted.', () => c.connectionsOpened);
  labelled('connections_closed_total', 'Connections closed, by code.', 'code', () => c.closed);
  labelled('handshakes_refused_total', 'Handshakes refused, by HTTP status.', 'status', () => c.refused);
  labelled('frames_in_total', 'Frames from clients, by type.', 'type', () => Object.entries(c.framesIn));
  labelled('frame_errors_total', 'Frames refused, by error code.', 'code', () =>
    Object.entries(c.frameErrors),
  );
  labelled('messages_published_total', 'Messages published through this node.', 'delivery', () =>
    Object.entries(c.published),
  );
  plain(
    registry,
    'messages_fanned_out_total',
    'Messages handed on to sessions of this node.',
    () => c.fannedOut,
  );
  plain(registry, 'deliveries_total', 'Messages times the subscribers they were for.', () => c.deliveries);
  plain(registry, 'direct_pushed_total', 'Direct messages taken from publishers.', () => c.directPushed);
  plain(registry, 'direct_sent_total', 'Direct messages handed to sockets.', () => c.directSent);
  plain(registry, 'direct_acked_total', 'Direct messages acknowledged by clients.', () => c.directAcked);
  plain(registry, 'gap_messages_repaired_total', 'Missed messages that were fetched.', () => c.gapsRepaired);
  plain(registry, 'gaps_lost_total', 'Gaps in which messages were gone for good.', () => c.gapsLost);
  plain(registry, 'resyncs_total', 'Connections that fell behind and were told so.', () => c.resyncs);
  plain(registry, 'slow_closes_total', 'Connections closed because they stayed behind.', () => c.slowCloses);
  plain(registry, 'faults_total', 'Unexpected faults that ended a connection.', () => c.faults);
  plain(
    registry,
    'bodies_dropped_total',
    'Messages dropped because their body does not parse.',
    () => c.bodiesDropped,
  );
}

function plain(registry: Registry, name: string, help: string, read: () => number): void {
  register(registry, name, help, [], () => [['', read()]]);
}

/** Label value and count. */
type Samples = Iterable<readonly [string | number, number]>;

function register(
  registry: Registry,
  name: string,
  help: string,
  labelNames: readonly string[],
  read: () => Samples,
): void {
  const counter: Counter = new Counter({
    name: prefix + name,
    help,
    labelNames,
    registers: [registry],
    collect() {
      counter.reset();
      for (const [value, count] of read()) {
        const [label] = labelNames;
        if (label === undefined) counter.inc(count);
        else counter.inc({ [label]: value }, count);
      }
    },
  });
}

function zeros<K extends string>(keys: readonly K[]): Record<K, number> {
  return Object.fromEntries(keys.map((key) => [key, 0])) as Record<K, number>;
}

function add<K>(counts: Map<K, number>, key: K): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
