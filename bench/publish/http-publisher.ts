import { connect } from 'node:net';
import { publisherOn, type OutgoingMessage, type Publisher } from '../fleet/publisher.js';

export interface HttpPublisherOptions {
  /** `http://host:port` */
  readonly url: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly topic: string;
  /** Of a payload. */
  readonly bytes: number;
  /** Of the request for one message. */
  readonly body: (message: OutgoingMessage) => string | Uint8Array;
}

/**
 * One connection, kept alive, that posts each message when it is due. It does not wait for the answer to the one before (pipelining, RFC 9112,
 * 9.3.2): else a server that is slow to answer would set the pace, and its slowness would not be seen.
 *
 * @throws Error when it cannot connect
 */
export async function openHttpPublisher(options: HttpPublisherOptions): Promise<Publisher> {
  const { body, bytes, headers = {}, path, topic, url } = options;
  const { host, hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('error', reject);
  });
  const refused: string[] = [];
  const answers = new HttpAnswers((status) => {
    if (status < 200 || status > 299) refused.push(`the server answered ${status}`);
  });
  socket.on('data', (chunk) => answers.push(chunk));
  socket.on('error', (error) => refused.push(error.message));
  socket.on('close', () => refused.push('the connection of the publisher was closed'));
  const own = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\n${own.join('')}`;
  return publisherOn(
    { bytes, topics: [topic] },
    {
      refused,
      send(message) {
        const content = Buffer.from(body(message));
        const start = Buffer.from(`${head}Content-Length: ${content.length}\r\n\r\n`);
        socket.write(Buffer.concat([start, content]));
      },
      close() {
        socket.removeAllListeners('close');
        socket.destroy();
      },
    },
  );
}

const endOfHead = '\r\n\r\n';

/** Finds the status of each of the answers that follow each other on a connection. Knows answers with a length, and those without a body. */
export class HttpAnswers {
  readonly #onAnswer: (status: number) => void;
  #rest = Buffer.alloc(0);

  constructor(onAnswer: (status: number) => void) {
    this.#onAnswer = onAnswer;
  }

  push(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    while (at < bytes.length) {
      const end = bytes.indexOf(endOfHead, at);
      if (end < 0) break;
      const head = bytes.toString('latin1', at, end);
      const next = end + endOfHead.length + Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
      if (next > bytes.length) break;
      this.#onAnswer(Number(head.slice(9, 12)));
      at = next;
    }
    this.#rest = Buffer.from(bytes.subarray(at));
  }
}
