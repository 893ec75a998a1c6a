import type { HerdSettings } from '../commands.js';
import { Deliveries } from '../deliveries.js';
import type { InboxCounts, LinkInbox } from '../inbox.js';
import { Latencies } from '../latencies.js';
import type { Link } from '../link.js';
import { nowUs } from '../marker.js';
import { emptyMessage, readMarker } from '../message-reader.js';
import { centrifugoDialect } from './centrifugo.js';
import type { Dialect, DialectName, DialectSink } from './dialect.js';
import { natsDialect } from './nats.js';
import { socketIoDialect } from './socket-io.js';

/** Counts and checks what servers other than a node send to sockets that are subscribed to one topic each, the same for all. */
export class PeerInbox implements LinkInbox, DialectSink {
  readonly latencies = new Latencies();
  readonly #dialect: Dialect;
  readonly #latency: boolean;
  readonly #onFault: (reason: string) => void;
  readonly #message = emptyMessage();
  readonly #deliveries: Deliveries | undefined;
  /** What frames have left over, by socket; empty but while a message is split over frames. */
  readonly #rests = new Map<number, Buffer>();
  /** Whose bytes are being read. */
  #link: Link | undefined;
  #wasAnswered = false;
  #messages = 0;
  #messagesAtBegin = 0;
  #foreign = 0;

  constructor(settings: HerdSettings, dialect: DialectName, onFault: (reason: string) => void) {
    const { check, firstNumber = -1, groups, latency, sockets } = settings;
    const [topic, ...others] = new Set(groups.flat());
    if (topic === undefined || others.length > 0) throw new RangeError('clients of a peer have one topic');
    this.#dialect = dialectOf(dialect, topic);
    this.#latency = latency;
    this.#onFault = onFault;
    this.#deliveries = check ? new Deliveries(sockets, 1, firstNumber) : undefined;
  }

  begin(): void {
    this.#messagesAtBegin = this.#messages;
    this.latencies.reset();
  }

  counts(): InboxCounts {
    const { disorder = 0, doubled = 0, lost = 0 } = this.#deliveries ?? {};
    return {
      messages: this.#messages,
      messagesSinceBegin: this.#messages - this.#messagesAtBegin,
      directs: 0,
      lost,
      doubled,
      disorder,
      foreign: this.#foreign,
      gaps: 0,
      notRecovered: 0,
      resyncs: 0,
    };
  }

  /** Topics are not part of the upgrade. */
  requests(): string[] {
    return [];
  }

  upgraded(link: Link): void {
    this.#rests.delete(link.index);
    if (this.#dialect.opening !== undefined) link.send(this.#dialect.opcode, this.#dialect.opening);
  }

  isAnswered(link: Link): boolean {
    return link.answered > 0;
  }

  take(link: Link, bytes: Buffer, start: number, end: number): boolean {
    this.#link = link;
    this.#wasAnswered = false;
    const rest = this.#rests.size === 0 ? undefined : this.#rests.get(link.index);
    if (rest === undefined) {
      const at = this.#dialect.read(bytes, start, end, this);
      if (at < end) this.#rests.set(link.index, Buffer.from(bytes.subarray(at, end)));
    } else {
      const whole = Buffer.concat([rest, bytes.subarray(start, end)]);
      const at = this.#dialect.read(whole, 0, whole.length, this);
      if (at < whole.length) this.#rests.set(link.index, whole.subarray(at));
      else this.#rests.delete(link.index);
    }
    return this.#wasAnswered;
  }

  // What the dialect finds.

  message(bytes: Buffer, payload: number, end: number): void {
    this.#messages++;
    if (!this.#latency && this.#deliveries === undefined) return;
    const message = this.#message;
    readMarker(bytes, payload, end, message);
    if (message.number < 0) {
      this.#foreign++;
      return;
    }
    if (this.#latency) this.latencies.record(nowUs() - message.dueUs);
    if (this.#link !== undefined) this.#deliveries?.take(this.#link.index, 0, message.number, -1);
  }

  reply(payload: Uint8Array): void {
    this.#link?.send(this.#dialect.opcode, payload);
  }

  ready(): void {
    if (this.#link === undefined) return;
    this.#link.answered++;
    this.#wasAnswered = true;
  }

  fault(reason: string): void {
    this.#onFault(reason);
  }
}

function dialectOf(name: DialectName, topic: string): Dialect {
  switch (name) {
    case 'socket.io':
      return socketIoDialect();
    case 'nats':
      return natsDialect(topic);
    case 'centrifugo':
      return centrifugoDialect(topic);
  }
}
