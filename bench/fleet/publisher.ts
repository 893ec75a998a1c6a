import { WebSocket } from 'ws';
import { encodeJsonClient, jsonCodec } from '../../protocol/codec-json.js';
import { encodeMsgpackClient, msgpackCodec } from '../../protocol/codec-msgpack.js';
import type { Encoded } from '../../protocol/codec.js';
import type { Payload } from '../../protocol/payload.js';
import { markedPayload, nowUs } from './marker.js';

export interface PublisherOptions {
  /** `http://host:port` of the server. */
  readonly url: string;
  /** Bytes of a payload, about. */
  readonly bytes: number;
  /** Message i goes to `topics[i % topics.length]`. */
  readonly topics: readonly string[];
  /** `json` unless given. */
  readonly codec?: 'json' | 'msgpack';
  readonly token?: string;
  /** Path and query; a node's unless given. */
  readonly path?: string;
  /** False for a server that knows no subprotocols. */
  readonly offerProtocol?: boolean;
  /** The frame for one message, for servers other than a node. */
  readonly wrap?: (message: OutgoingMessage) => Encoded;
}

export interface OutgoingMessage {
  readonly topic: string;
  readonly data: Payload;
  /** Within its topic, from 0. */
  readonly number: number;
}

export interface Publisher {
  /** Messages sent so far. */
  readonly sent: number;
  /** What the server refused, and whether it closed the connection, in words. */
  readonly refused: readonly string[];
  /**
   * Sends the next `count` messages, `perSec` a second, each due at its own time: what comes late is sent at once and does not move the later ones.
   * @throws the signal's reason
   */
  send(count: number, perSec: number, signal?: AbortSignal): Promise<void>;
  close(): void;
}

/** One WebSocket connection that publishes marked messages (`marker.ts`). @throws Error when it cannot connect */
export async function openPublisher(options: PublisherOptions): Promise<Publisher> {
  const { codec: name = 'json', token } = options;
  const { offerProtocol = true, path = '/v1/connect', url, wrap = publishFrame } = options;
  const codec = name === 'json' ? jsonCodec : msgpackCodec;
  const socket = new WebSocket(url.replace(/^http/, 'ws') + path, offerProtocol ? [codec.subprotocol] : [], {
    perMessageDeflate: false,
    ...(token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } }),
  });
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', reject);
  });
  const refused: string[] = [];
  socket.on('message', (data: Buffer) => {
    const frame = codec.decodeServer(data);
    if (frame.ok && frame.value.type === 'error') refused.push(`${frame.value.code} ${frame.value.message}`);
  });
  socket.on('error', (error) => refused.push(error.message));
  socket.on('close', (code) => refused.push(`the connection of the publisher was closed (${code})`));
  return publisherOn(options, {
    refused,
    send: (message) => socket.send(wrap(message)),
    close: () => {
      socket.removeAllListeners('close');
      socket.terminate();
    },
  });
}

/** A connection that takes one message after the other, whatever its protocol. */
export interface PublisherLine {
  readonly refused: readonly string[];
  send(message: OutgoingMessage): void;
  close(): void;
}

/** Publishes marked messages on a connection. @throws RangeError without a topic */
export function publisherOn(
  { bytes, codec = 'json', topics }: Pick<PublisherOptions, 'bytes' | 'codec' | 'topics'>,
  line: PublisherLine,
): Publisher {
  if (topics.length === 0) throw new RangeError('a publisher needs a topic');
  let sent = 0;
  const sendOne = (dueUs: number): void => {
    const topic = topics[sent % topics.length] ?? '';
    const number = Math.floor(sent / topics.length);
    line.send({ topic, number, data: markedPayload(codec, { dueUs, number }, bytes) });
    sent++;
  };
  return {
    get sent() {
      return sent;
    },
    refused: line.refused,
    send: (count, perSec, signal) => paced(count, perSec, sendOne, signal),
    close: () => line.close(),
  };
}

/** Calls `send` so many times, each with the µs at which it is due: those that are late come at once. @throws the signal's reason */
export function paced(
  count: number,
  perSec: number,
  send: (dueUs: number) => void,
  signal?: AbortSignal,
): Promise<void> {
  const startUs = nowUs();
  const dueUs = (i: number): number => Math.round(startUs + (i * 1e6) / perSec);
  let done = 0;
  return new Promise((resolve, reject) => {
    const step = (): void => {
      if (signal?.aborted === true) return reject(signal.reason as Error);
      for (; done < count && dueUs(done) <= nowUs(); done++) send(dueUs(done));
      if (done === count) resolve();
      else setTimeout(step, Math.max(0, (dueUs(done) - nowUs()) / 1000));
    };
    step();
  });
}

function publishFrame({ data, number, topic }: OutgoingMessage): Encoded {
  const frame = { type: 'publish', req: number, topic, data } as const;
  return data.format === 'json' ? encodeJsonClient(frame) : encodeMsgpackClient(frame);
}
