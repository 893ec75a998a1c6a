import type { LiveMessage, StoredMessage } from '../broker/bus.js';
import { jsonCodec } from '../protocol/codec-json.js';
import { msgpackCodec } from '../protocol/codec-msgpack.js';
import type { Payload } from '../protocol/payload.js';
import { transcode } from '../protocol/transcode.js';

/**
 * One message on its way from a channel to its sessions. It is encoded at most once per codec, when the first session of that
 * codec needs it (G1), and keeps the encoding for replays from the ring.
 */
export class ChannelMessage {
  readonly topic: string;
  readonly payload: Payload;
  /** 0 on live topics. */
  readonly offset: number;
  /** The channel's offset before this one: nothing of the channel lies between the two. */
  readonly prev: number;
  /** The pattern it came for; undefined when the channel is the exact topic. */
  readonly pattern: string | undefined;
  #json: string | undefined;
  #msgpack: Uint8Array | undefined;

  constructor(source: LiveMessage | StoredMessage, prev: number, pattern: string | undefined) {
    this.topic = source.topic;
    this.payload = source.payload;
    this.offset = 'offset' in source ? source.offset : 0;
    this.prev = prev;
    this.pattern = pattern;
  }

  /** The `msg` frame as JSON text. */
  get json(): string {
    return (this.#json ??= jsonCodec.encodeServer(this.#frame('json')) as string);
  }

  /** The `msg` frame as MessagePack. */
  get msgpack(): Uint8Array {
    return (this.#msgpack ??= msgpackCodec.encodeServer(this.#frame('msgpack')) as Uint8Array);
  }

  /** Roughly what it holds in memory, to bound rings: the payload and the frame around it. */
  get bytes(): number {
    return payloadBytes(this.payload) + 160;
  }

  #frame(format: 'json' | 'msgpack') {
    return {
      type: 'msg' as const,
      topic: this.topic,
      data: transcode(this.payload, format),
      ...(this.offset > 0 && { offset: this.offset }),
      ...(this.pattern !== undefined && { pattern: this.pattern }),
    };
  }
}

/** UTF-16 units or bytes: near enough for a memory bound. */
function payloadBytes(payload: Payload): number {
  return payload.format === 'json' ? payload.text.length : payload.bytes.length;
}
