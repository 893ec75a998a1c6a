import { pino } from 'pino';
import { createNatsBus } from '../../broker/bus-nats.js';
import type { Published, TopicBus } from '../../broker/bus.js';
import { createNamespaces, defaultNamespace, type Namespaces } from '../../broker/namespaces.js';
import { NatsLink, type NatsSettings } from '../../broker/nats-link.js';
import { Batcher } from '../../node/batcher.js';
import type { Channel } from '../../node/channel.js';
import { Channels } from '../../node/channels.js';
import { type Fanout } from '../../node/fanout.js';
import type { Counters } from '../../node/metrics.js';
import type { Payload } from '../../protocol/payload.js';
import type { Position } from '../../protocol/position.js';
import { Signal } from './signal.js';

let prefixes = 0;

/** A prefix that no other test of the servers uses. */
export function freshPrefix(): string {
  return `t${++prefixes}`;
}

export const item = {
  ...defaultNamespace,
  delivery: 'durable',
  historyMax: 100_000,
  historySec: 3600,
} as const;
export const itemNamespaces = createNamespaces({ item });

export interface TestBusOptions {
  readonly servers: readonly string[];
  readonly prefix: string;
  readonly namespaces?: Namespaces;
  readonly auditSec?: number;
  readonly replicas?: number;
  readonly creds?: string;
  /** Told of each of `faults`, so too while the bus starts. */
  readonly onFault?: (error: unknown) => void;
}

/** A started bus with the node's own channels on top, which check and repair what it delivers. */
export interface TestNode {
  readonly bus: TopicBus;
  readonly link: NatsLink;
  readonly channels: Channels;
  readonly counters: Pick<Counters, 'gapsRepaired' | 'gapsLost' | 'bodiesDropped'>;
  readonly faults: unknown[];
  readonly epochs: { namespace: string; head: Position }[];
  readonly signal: Signal;
  /** Opens a channel, settles when it is hosted. */
  host(...filters: string[]): Promise<Hosted>;
  store(topic: string, value: unknown, id?: string): Promise<Published>;
  stop(): Promise<void>;
}

export interface Hosted {
  readonly channel: Channel;
  /** What came out of it, in order: the payload's text. */
  readonly texts: string[];
  readonly offsets: number[];
  readonly gaps: { from: number; to: number }[];
}

export function json(value: unknown): Payload {
  return { format: 'json', text: JSON.stringify(value) };
}

export async function startTestNode(options: TestBusOptions): Promise<TestNode> {
  const settings: NatsSettings = {
    servers: options.servers,
    name: 'test',
    ...(options.creds !== undefined && { creds: options.creds }),
  };
  const link = await NatsLink.open(settings);
  const namespaces = options.namespaces ?? itemNamespaces;
  const signal = new Signal();
  const faults: unknown[] = [];
  const epochs: TestNode['epochs'] = [];
  const hosted = new Map<Channel, Hosted>();
  const counters = { gapsRepaired: 0, gapsLost: 0, bodiesDropped: 0 };
  const bus = createNatsBus({
    link,
    namespaces,
    prefix: options.prefix,
    replicas: options.replicas ?? 3,
    auditSec: options.auditSec ?? 15,
    onFault: (error) => {
      faults.push(error);
      options.onFault?.(error);
    },
  });
  const fanout: Pick<Fanout, 'publish'> = {
    publish(channel, items) {
      const to = hosted.get(channel);
      for (const one of items) {
        if (one.kind === 'gap') to?.gaps.push({ from: one.from, to: one.to });
        else {
          const { offset, payload } = one.message;
          to?.texts.push(payload.format === 'json' ? payload.text : 'bytes');
          to?.offsets.push(offset);
        }
      }
      signal.notify();
    },
  };
  const channels = new Channels({
    bus,
    namespaces,
    fanout: fanout as Fanout,
    batcher: new Batcher(5),
    ringMessages: 100,
    ringBytes: 1e6,
    lingerMs: 1000,
    log: pino({ level: 'silent' }),
    counters,
    onEpoch: (namespace, head) => {
      epochs.push({ namespace, head });
      signal.notify();
    },
  });
  await bus.start(channels);
  link.watch(() => signal.notify());
  return {
    bus,
    link,
    channels,
    counters,
    faults,
    epochs,
    signal,
    async host(...filters) {
      const channel = channels.acquire(filters.join(' '), filters);
      const one = { channel, texts: [], offsets: [], gaps: [] };
      hosted.set(channel, one);
      await channel.whenOpen();
      return one;
    },
    async store(topic, value, id) {
      const published = await bus.publish({
        topic,
        payload: json(value),
        publisher: 'p',
        ...(id !== undefined && { id }),
      });
      if (published === undefined) throw new Error(`${topic} is not durable`);
      return published;
    },
    async stop() {
      await bus.stop();
      await link.close();
    },
  };
}

export function unexpected(error: unknown): never {
  throw error;
}
