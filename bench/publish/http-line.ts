import { connect, type Socket } from 'node:net';

export interface HttpAnswer {
  readonly status: number;
  readonly body: string;
}

interface Waiting {
  readonly resolve: (answer: HttpAnswer) => void;
  readonly reject: (error: Error) => void;
}

const endOfHead = Buffer.from('\r\n\r\n');

/**
 * One connection to a node, kept alive, with one request at a time. HTTP clients that can do everything cost several times the CPU of the node's side,
 * and would be measured in its place; this one knows just what a node answers: a status, `Content-Length` and a body.
 */
export class HttpLine {
  readonly #socket: Socket;
  readonly #host: string;
  #waiting: Waiting | undefined;
  #received: Buffer | undefined;
  #error: Error | undefined;

  private constructor(socket: Socket, host: string) {
    this.#socket = socket;
    this.#host = host;
    socket.on('data', (chunk) => this.#take(chunk));
    socket.on('error', (error) => this.#fail(error));
    socket.on('close', () => this.#fail(new Error('the node closed the connection')));
  }

  /** @param url `http://host:port` @throws Error when it cannot connect */
  static open(url: string): Promise<HttpLine> {
    const { host, hostname, port } = new URL(url);
    return new Promise((resolve, reject) => {
      const socket = connect({ host: hostname, port: Number(port), noDelay: true });
      socket.once('error', reject);
      socket.once('connect', () => {
        socket.off('error', reject);
        resolve(new HttpLine(socket, host));
      });
    });
  }

  /** Posts JSON. @throws Error when another request waits, or the connection ends */
  post(path: string, body: string): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      if (this.#error !== undefined) return reject(this.#error);
      if (this.#waiting !== undefined) return reject(new Error('a request is under way on this connection'));
      this.#waiting = { resolve, reject };
      const head = `POST ${path} HTTP/1.1\r\nHost: ${this.#host}\r\nContent-Type: application/json\r\n`;
      this.#socket.write(`${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
    });
  }

  close(): void {
    this.#socket.removeAllListeners('close');
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    const received = this.#received === undefined ? chunk : Buffer.concat([this.#received, chunk]);
    this.#received = received;
    const end = received.indexOf(endOfHead);
    if (end < 0) return;
    const head = received.toString('latin1', 0, end);
    const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? NaN);
    if (Number.isNaN(length)) return this.#fail(new Error(`an answer without a length: ${head}`));
    const start = end + endOfHead.length;
    if (received.length < start + length) return;
    this.#received = undefined;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.resolve({
      status: Number(head.slice(9, 12)),
      body: received.toString('utf8', start, start + length),
    });
  }

  #fail(error: Error): void {
    this.#error ??= error;
    this.#waiting?.reject(this.#error);
    this.#waiting = undefined;
  }
}
