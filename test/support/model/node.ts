import { createNamespaces, defaultNamespace } from '../../../broker/namespaces.js';
import type { ClientFrame, TopicRequest } from '../../../protocol/frames.js';
import { defaultLimits } from '../../../protocol/limits.js';
import { Batcher } from '../../../node/batcher.js';
import { Channels } from '../../../node/channels.js';
import { Fanout } from '../../../node/fanout.js';
import { allGrants } from '../../../node/grants.js';
import { createLogger } from '../../../node/log.js';
import { Session, type SessionOwner } from '../../../node/session.js';
import { Subscriptions } from '../../../node/subscriptions.js';
import type { Random } from '../random.js';
import { namespace, ModelBus, type Faults } from './bus.js';
import type { ModelClock } from './clock.js';
import { ModelSocket } from './socket.js';
import type { ModelStore } from './store.js';

const log = createLogger('fatal', { write: () => undefined });
const principal = { userId: 'u', grants: allGrants, tokenId: 't', topics: [] };
const namespaces = createNamespaces({ [namespace]: { ...defaultNamespace, delivery: 'durable' } });

export const lingerMs = 300;

/** One accepted connection of the model: the node's end and the client's. */
export interface Link {
  readonly session: Session;
  readonly socket: ModelSocket;
  /** From the client, not yet received. */
  readonly frames: ClientFrame[];
}

/** Everything of a node between its bus and its sockets, for real. */
export class ModelNode implements SessionOwner {
  readonly bus: ModelBus;
  readonly counters = { fannedOut: 0, deliveries: 0, gapsRepaired: 0, gapsLost: 0, bodiesDropped: 0 };
  readonly faults: unknown[] = [];
  resyncs = 0;
  readonly links = new Set<Link>();
  readonly #channels: Channels;
  readonly #subscriptions: Subscriptions;
  #sessions = 0;

  constructor(store: ModelStore, clock: ModelClock, random: Random, faults: Faults) {
    this.bus = new ModelBus(store, random, faults);
    const publish = (topic: string, frame: string | Uint8Array): void => {
      for (const { socket } of this.links) socket.publish(topic, frame);
    };
    this.#channels = new Channels({
      bus: this.bus,
      namespaces,
      fanout: new Fanout(publish, this.counters),
      batcher: new Batcher(5, () => clock.now),
      ringMessages: 2 + random.int(8),
      ringBytes: 1_000_000,
      lingerMs,
      log,
      counters: this.counters,
      onEpoch: (ns, head) => {
        for (const { session } of [...this.links]) this.#subscriptions.restart(session, ns, head);
      },
    });
    this.#subscriptions = new Subscriptions(this.#channels, this.bus, defaultLimits);
  }

  async start(): Promise<void> {
    await this.bus.start(this.#channels);
  }

  get channels(): number {
    return this.#channels.size;
  }

  connect(topics: readonly TopicRequest[], kernelMax: number, bufferMax: number): Link {
    const socket: ModelSocket = new ModelSocket(kernelMax, bufferMax, {
      dropped: () => session.onDropped(),
      drained: () => session.onDrained(),
      closed: () => {
        this.links.delete(link);
        session.onClosed();
      },
    });
    const identity = { id: `n.${++this.#sessions}`, principal, device: undefined, format: 'json' as const };
    const session: Session = new Session(identity, socket, this, 0);
    const link: Link = { session, socket, frames: [] };
    this.links.add(link);
    session.welcome({ type: 'welcome', session: session.id, node: 'n', pingSec: 30, idleSec: 180 });
    this.#subscriptions.subscribe(session, topics, undefined);
    return link;
  }

  /** Receives the next frame of a client. */
  receive({ frames, session }: Link): void {
    const frame = frames.shift();
    if (frame !== undefined && !session.holdFrame(frame)) this.#handle(session, frame);
  }

  detach(session: Session): void {
    this.#subscriptions.abandonAll(session);
  }

  onRecovered(session: Session): void {
    for (const frame of session.takeHeldFrames()) this.#handle(session, frame);
  }

  onFault(_session: Session, error: unknown): void {
    this.faults.push(error);
  }

  onDropped(): void {
    this.resyncs++;
  }

  /** As the frame handler does. */
  #handle(session: Session, frame: ClientFrame): void {
    switch (frame.type) {
      case 'subscribe':
        return this.#subscriptions.subscribe(session, frame.topics, frame.req);
      case 'unsubscribe':
        this.#subscriptions.unsubscribe(session, frame.topics);
        return session.send({
          type: 'unsubscribed',
          ...(frame.req !== undefined && { req: frame.req }),
          topics: frame.topics,
        });
      case 'ping': {
        const floors = this.#subscriptions.floors(session);
        return session.send({ type: 'pong', ...(floors !== undefined && { floors }) });
      }
      default:
        throw new Error(`clients of the model do not send ${frame.type}`);
    }
  }
}
