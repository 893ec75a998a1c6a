import type { NatsConnection } from 'nats';
import type { Payload } from '../protocol/payload.js';
import { unavailable } from './errors.js';
import { encodeBody, encodeHeaders, idHeader } from './nats-body.js';

/** A message for a stream. */
export interface StreamMessage {
  readonly subject: string;
  readonly payload: Payload;
  /** By which the stream de-duplicates. ASCII. */
  readonly id: string | undefined;
}

/** The part of the client that commands go through. Its public types leave it out. */
interface Commands {
  sendCommand(command: string): void;
}

/** Characters of commands after which they are handed over. */
const textCharsMax = 64 * 1024;

/**
 * Sends messages in their order. Those of JSON are written as one text, which is encoded once and leaves in few writes; the client's own `publish` encodes
 * and queues each part of each message (nats.js 2.29, whose version is pinned).
 * @param replyOf where the stream acknowledges the message at an index
 * @param refused called for each message that was not sent
 */
export function sendAll(
  nc: NatsConnection,
  messages: readonly StreamMessage[],
  replyOf: (index: number) => string,
  refused: (index: number, error: unknown) => void,
): void {
  const { protocol } = nc as unknown as { readonly protocol: Commands };
  const bytesMax = nc.info?.max_payload ?? Infinity;
  let text = '';
  const handOver = (): void => {
    if (text !== '') protocol.sendCommand(text);
    text = '';
  };
  for (const [i, message] of messages.entries()) {
    try {
      if (nc.isClosed() || nc.isDraining()) throw unavailable('the connection is being closed');
      if (message.payload.format === 'json') {
        text += commandOf(message, message.payload.text, replyOf(i), bytesMax);
        if (text.length >= textCharsMax) handOver();
      } else {
        handOver();
        const headers = encodeHeaders(message.payload, message.id);
        const reply = replyOf(i);
        nc.publish(
          message.subject,
          encodeBody(message.payload),
          headers === undefined ? { reply } : { reply, headers },
        );
      }
    } catch (error) {
      refused(i, error);
    }
  }
  handOver();
}

/** Source: the NATS client protocol, PUB and HPUB; lengths are in bytes. */
function commandOf({ id, subject }: StreamMessage, body: string, reply: string, bytesMax: number): string {
  const headers = id === undefined ? '' : idHeader(id);
  const size = headers.length + Buffer.byteLength(body);
  // The server would end the connection.
  if (size > bytesMax) throw unavailable(`NATS takes ${bytesMax} bytes at most`);
  return headers === ''
    ? `PUB ${subject} ${reply} ${size}\r\n${body}\r\n`
    : `HPUB ${subject} ${reply} ${headers.length} ${size}\r\n${headers}${body}\r\n`;
}
