import type { Encoded } from '../protocol/codec.js';
import { jsonCodec } from '../protocol/codec-json.js';
import { msgpackCodec } from '../protocol/codec-msgpack.js';
import type { ServerFrame } from '../protocol/frames.js';
import type { Channel } from './channel.js';
import type { FeedItem } from './feed.js';
import type { ChannelMessage } from './message.js';
import type { Counters } from './metrics.js';

/** µWS: one call reaches every socket of a topic. */
export type Publish = (topic: string, frame: Encoded, isBinary: boolean) => void;

/** From a channel to its sessions: encodes once per codec and lets µWS do the rest. */
export class Fanout {
  readonly #publish: Publish;
  readonly #counters: Pick<Counters, 'fannedOut' | 'deliveries'>;
  /** The latest value of each topic that waits for its channel's conflation window. */
  readonly #conflating = new Map<Channel, Map<string, ChannelMessage>>();

  constructor(publish: Publish, counters: Pick<Counters, 'fannedOut' | 'deliveries'>) {
    this.#publish = publish;
    this.#counters = counters;
  }

  /** Sends items in order to everybody who is live on the channel. */
  publish(channel: Channel, items: readonly FeedItem[]): void {
    if (channel.subscribers === 0) return;
    for (const item of items) {
      if (item.kind === 'gap') this.#gap(channel, item.from, item.to);
      else if (channel.settings.conflateMs > 0) this.#conflate(channel, item.message);
      else this.#message(channel, item.message);
    }
  }

  /** Sends a control frame to everybody who is live on the channel. */
  broadcast(channel: Channel, frame: ServerFrame): void {
    if (channel.jsonCount > 0) this.#publish(channel.jsonTopic, jsonCodec.encodeServer(frame), false);
    if (channel.msgpackCount > 0) this.#publish(channel.msgpackTopic, msgpackCodec.encodeServer(frame), true);
    for (const stream of channel.streams) stream.send(frame);
  }

  #message(channel: Channel, message: ChannelMessage): void {
    channel.messages++;
    this.#counters.fannedOut++;
    this.#counters.deliveries += channel.subscribers;
    if (channel.jsonCount > 0) this.#publish(channel.jsonTopic, message.json, false);
    if (channel.msgpackCount > 0) this.#publish(channel.msgpackTopic, message.msgpack, true);
    for (const stream of channel.streams) stream.deliver(message);
  }

  #gap(channel: Channel, from: number, to: number): void {
    for (const topic of channel.filters) this.broadcast(channel, { type: 'gap', topic, from, to });
  }

  #conflate(channel: Channel, message: ChannelMessage): void {
    const waiting = this.#conflating.get(channel);
    if (waiting !== undefined) {
      waiting.set(message.topic, message);
      return;
    }
    // The first value goes out at once; the window that it opens keeps only the latest of each topic.
    this.#message(channel, message);
    this.#openWindow(channel);
  }

  #openWindow(channel: Channel): void {
    const latest = new Map<string, ChannelMessage>();
    this.#conflating.set(channel, latest);
    setTimeout(() => {
      this.#conflating.delete(channel);
      if (latest.size === 0 || channel.subscribers === 0) return;
      for (const message of latest.values()) this.#message(channel, message);
      this.#openWindow(channel);
    }, channel.settings.conflateMs).unref();
  }
}
