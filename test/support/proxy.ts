import { createConnection, createServer, type AddressInfo, type Socket } from 'node:net';

/** A way to a NATS server on which a test can lose messages, or everything. */
export interface NatsProxy {
  readonly url: string;
  /** How many of the messages to subjects that this answers true for were lost. */
  dropped: number;
  /** Loses each message to a client on a subject that this answers true for. */
  drop: (subject: string) => boolean;
  /** Ends all connections and takes no new ones until `restore`. */
  cut(): void;
  restore(): void;
  close(): Promise<void>;
}

const newline = Buffer.from('\r\n');

export async function startNatsProxy(target: string): Promise<NatsProxy> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((client) => {
    if (isCut) return void client.destroy();
    const upstream = createConnection(Number(port), hostname);
    const split = new MessageFilter((subject) => {
      const isDropped = proxy.drop(subject);
      if (isDropped) proxy.dropped++;
      return isDropped;
    });
    upstream.on('data', (bytes) => {
      for (const part of split.push(bytes)) client.write(part);
    });
    client.on('data', (bytes) => upstream.write(bytes));
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      // The close that follows says all that matters here.
      socket.on('error', () => other.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const proxy: NatsProxy = {
    // So that the client does not learn of ways around the proxy, tests let it know this one alone.
    url: `nats://127.0.0.1:${(server.address() as AddressInfo).port}`,
    dropped: 0,
    drop: () => false,
    cut() {
      isCut = true;
      for (const socket of sockets) socket.destroy();
    },
    restore() {
      isCut = false;
    },
    async close() {
      proxy.cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return proxy;
}

/** Cuts what a server sends into protocol messages, and leaves out some. */
class MessageFilter {
  readonly #isDropped: (subject: string) => boolean;
  #rest: Buffer = Buffer.alloc(0);

  constructor(isDropped: (subject: string) => boolean) {
    this.#isDropped = isDropped;
  }

  push(bytes: Buffer): Buffer[] {
    this.#rest = Buffer.concat([this.#rest, bytes]);
    const parts: Buffer[] = [];
    for (;;) {
      const end = this.#rest.indexOf(newline);
      if (end < 0) return parts;
      const [operation, subject = '', ...others] = this.#rest.toString('latin1', 0, end).split(' ');
      const isMessage = operation === 'MSG' || operation === 'HMSG';
      const length = end + 2 + (isMessage ? Number(others.at(-1)) + 2 : 0);
      if (this.#rest.length < length) return parts;
      if (!isMessage || !this.#isDropped(subject)) parts.push(this.#rest.subarray(0, length));
      this.#rest = this.#rest.subarray(length);
    }
  }
}
