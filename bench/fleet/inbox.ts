import type { Codec } from '../../protocol/codec.js';
import type { ClientFrame, ServerFrame, SubscribedTopic } from '../../protocol/frames.js';
import { formatTopicRequest, parseTopicRequest } from '../../protocol/topic-request.js';
import type { HerdSettings, HerdState } from './commands.js';
import { Deliveries } from './deliveries.js';
import { Latencies } from './latencies.js';
import type { Link } from './link.js';
import { markerOf, nowUs } from './marker.js';
import { emptyMessage, jsonReader, msgpackReader, type MessageReader } from './message-reader.js';
import { TopicIndex } from './topic-index.js';
import { handshakeRoom } from './upgrade.js';

export type InboxCounts = Pick<
  HerdState,
  | 'messages'
  | 'messagesSinceBegin'
  | 'directs'
  | 'lost'
  | 'doubled'
  | 'disorder'
  | 'foreign'
  | 'gaps'
  | 'notRecovered'
  | 'resyncs'
>;

/** What a herd asks of whoever reads what comes on its sockets. */
export interface LinkInbox {
  readonly latencies: Latencies;
  begin(): void;
  counts(): InboxCounts;
  /** What the upgrade asks for. */
  requests(link: Link): string[];
  /** The upgrade was accepted. */
  upgraded?(link: Link): void;
  /** Whether the server has answered for all that the link has asked for. */
  isAnswered(link: Link): boolean;
  /** @returns whether the frame may have answered a subscription */
  take(link: Link, bytes: Buffer, start: number, end: number): boolean;
}

/** Counts and checks what a node sends to the sockets of a herd, and knows where each of them stands. */
export class Inbox implements LinkInbox {
  readonly latencies = new Latencies();
  readonly #settings: HerdSettings;
  readonly #codec: Codec;
  readonly #onFault: (reason: string) => void;
  readonly #reader: MessageReader;
  readonly #message = emptyMessage();
  readonly #topics: TopicIndex;
  /** Of each group, the numbers of its topics; a topic's slot is its place in there. */
  readonly #groups: readonly Int32Array[];
  /** Undefined when nothing is checked. */
  readonly #deliveries: Deliveries | undefined;
  /** Of each topic, by number; undefined: not durable, as far as is known. */
  readonly #epochs: (string | undefined)[];
  #messages = 0;
  #messagesAtBegin = 0;
  #directs = 0;
  #foreign = 0;
  #gaps = 0;
  #notRecovered = 0;
  #resyncs = 0;

  constructor(settings: HerdSettings, codec: Codec, onFault: (reason: string) => void) {
    this.#settings = settings;
    this.#codec = codec;
    this.#onFault = onFault;
    this.#reader = codec.binary ? msgpackReader : jsonReader;
    this.#topics = new TopicIndex(settings.groups.flat());
    const numbers = new Map(this.#topics.names.map((name, number) => [name, number]));
    this.#groups = settings.groups.map((group) => Int32Array.from(group, (name) => numbers.get(name) ?? -1));
    this.#epochs = this.#topics.names.map(() => undefined);
    const slots = Math.max(0, ...settings.groups.map((group) => group.length));
    this.#deliveries = settings.check
      ? new Deliveries(settings.sockets, slots, settings.firstNumber ?? -1)
      : undefined;
  }

  begin(): void {
    this.#messagesAtBegin = this.#messages;
    this.latencies.reset();
  }

  counts(): InboxCounts {
    return {
      messages: this.#messages,
      messagesSinceBegin: this.#messages - this.#messagesAtBegin,
      directs: this.#directs,
      lost: this.#deliveries?.lost ?? 0,
      doubled: this.#deliveries?.doubled ?? 0,
      disorder: this.#deliveries?.disorder ?? 0,
      foreign: this.#foreign,
      gaps: this.#gaps,
      notRecovered: this.#notRecovered,
      resyncs: this.#resyncs,
    };
  }

  /** What the link subscribes to, with the positions that it has. A topic without one starts anew. */
  requests(link: Link): string[] {
    const group = this.#groupOf(link);
    const requests: string[] = [];
    for (let slot = 0; slot < group.length; slot++) {
      const topic = this.#topics.names[group[slot]!] ?? '';
      const epoch = this.#epochs[group[slot]!];
      const offset = this.#deliveries?.offset(link.index, slot) ?? -1;
      if (epoch === undefined || offset < 0) {
        if (link.wasReady) this.#deliveries?.forget(link.index, slot);
        requests.push(topic);
      } else {
        requests.push(formatTopicRequest({ topic, epoch, offset }));
      }
    }
    return requests;
  }

  /** Whether the server has answered for each topic of the link. */
  isAnswered(link: Link): boolean {
    return link.answered >= this.#groupOf(link).length;
  }

  /** @returns whether the frame may have answered a subscription */
  take(link: Link, bytes: Buffer, start: number, end: number): boolean {
    if (!this.#reader.isMessage(bytes, start, end)) return this.#takeOther(link, bytes.subarray(start, end));
    this.#messages++;
    if (this.#settings.check || this.#settings.latency) this.#look(link, bytes, start, end);
    return false;
  }

  #look(link: Link, bytes: Buffer, start: number, end: number): void {
    const message = this.#message;
    this.#reader.read(bytes, start, end, message);
    if (this.#settings.latency && message.dueUs >= 0) this.latencies.record(nowUs() - message.dueUs);
    if (this.#deliveries === undefined) return;
    const byPattern = message.patternEnd > message.patternStart;
    const slot = byPattern
      ? this.#slotOf(link, this.#topics.find(bytes, message.patternStart, message.patternEnd))
      : this.#slotOf(link, this.#topics.find(bytes, message.topicStart, message.topicEnd));
    if (slot < 0) this.#foreign++;
    else if (byPattern) this.#deliveries.takeOffset(link.index, slot, message.offset);
    else if (message.number < 0) this.#foreign++;
    else this.#deliveries.take(link.index, slot, message.number, message.offset);
  }

  #takeOther(link: Link, bytes: Buffer): boolean {
    const decoded = this.#codec.decodeServer(bytes);
    if (!decoded.ok) {
      this.#onFault(`a frame cannot be read: ${decoded.message}`);
      return false;
    }
    const frame = decoded.value;
    switch (frame.type) {
      case 'welcome':
        this.#subscribeRest(link);
        return true;
      case 'subscribed':
        for (const topic of frame.topics) this.#subscribed(link, topic);
        return true;
      case 'direct':
        this.#takeDirect(link, frame);
        return false;
      case 'gap':
        this.#gaps++;
        return false;
      case 'resync':
        this.#resync(link, frame.topics);
        return false;
      case 'bye':
        link.closeCode = frame.code;
        link.retryMs = frame.retryMs ?? 0;
        return false;
      case 'error':
        this.#onFault(`refused: ${frame.code} ${frame.message}`);
        return false;
      default:
        return false;
    }
  }

  /** Topics that the handshake had no room for. */
  #subscribeRest(link: Link): void {
    const requests = this.requests(link);
    const rest = requests.slice(handshakeRoom(requests));
    if (rest.length > 0) this.#subscribe(link, rest);
  }

  #subscribe(link: Link, requests: readonly string[]): void {
    const topics = requests.map((text) => {
      const parsed = parseTopicRequest(text);
      return parsed.ok ? parsed.value : { topic: text };
    });
    this.#send(link, { type: 'subscribe', req: 1, topics });
  }

  #subscribed(link: Link, answer: SubscribedTopic): void {
    link.answered++;
    if ('error' in answer) {
      this.#onFault(`${answer.topic} was not subscribed: ${answer.error}`);
      return;
    }
    const name = Buffer.from(answer.topic);
    const number = this.#topics.find(name, 0, name.length);
    const slot = this.#slotOf(link, number);
    if (slot < 0 || !('epoch' in answer)) return;
    const hadPosition = (this.#deliveries?.offset(link.index, slot) ?? -1) >= 0;
    if (hadPosition && !answer.recovered) {
      this.#notRecovered++;
      this.#deliveries?.forget(link.index, slot);
    }
    this.#epochs[number] = answer.epoch;
    this.#deliveries?.setOffset(link.index, slot, answer.offset);
  }

  #takeDirect(link: Link, frame: Extract<ServerFrame, { type: 'direct' }>): void {
    this.#directs++;
    const marker = this.#settings.latency ? markerOf(frame.data) : undefined;
    if (marker !== undefined) this.latencies.record(nowUs() - marker.dueUs);
    if (frame.id !== undefined) this.#send(link, { type: 'ack', ids: [frame.id] });
  }

  /** The connection fell behind: asks again for what was left out. */
  #resync(link: Link, topics: readonly string[]): void {
    this.#resyncs++;
    const wanted = new Set(topics);
    const group = this.#groupOf(link);
    const requests = this.requests(link).filter((_, slot) =>
      wanted.has(this.#topics.names[group[slot]!] ?? ''),
    );
    this.#subscribe(link, requests);
  }

  #send(link: Link, frame: ClientFrame): void {
    const encoded = this.#codec.encodeClient(frame);
    if (typeof encoded === 'string') link.send('text', Buffer.from(encoded));
    else link.send('binary', encoded);
  }

  #groupOf(link: Link): Int32Array {
    return this.#groups[(this.#settings.first + link.index) % this.#groups.length] ?? noTopics;
  }

  #slotOf(link: Link, topic: number): number {
    return topic < 0 ? -1 : this.#groupOf(link).indexOf(topic);
  }
}

const noTopics = new Int32Array(0);
