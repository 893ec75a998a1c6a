import { createConnection, createServer, type AddressInfo, type Socket } from 'node:net';

/** A way to a NATS server on which a test can lose messages, or everything, and hold back subscriptions. */
export interface NatsProxy {
  readonly url: string;
  /** How many of the messages to subjects that this answers true for were lost. */
  dropped: number;
  /** Loses each message to a client on a subject that this answers true for. */
  drop: (subject: string) => boolean;
  /** Holds back each subscription of a client to a subject that this answers true for; whatever else the client sends passes it. */
  hold: (subject: string) => boolean;
  /** How many are held back. */
  readonly held: number;
  /** Lets those go that are held back. */
  release(): void;
  /** Ends all connections and takes no new ones until `restore`. */
  cut(): void;
  restore(): void;
  close(): Promise<void>;
}

const newline = Buffer.from('\r\n');

export async function startNatsProxy(target: string): Promise<NatsProxy> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  const held: { client: Socket; id: string; release: () => void }[] = [];
  let isCut = false;
  const server = createServer((client) => {
    if (isCut) return void client.destroy();
    const upstream = createConnection(Number(port), hostname);
    const fromServer = new ProtocolSplitter();
    upstream.on('data', (bytes) => {
      for (const part of fromServer.push(bytes)) {
        const isDropped = part.carriesPayload && proxy.drop(part.subject);
        if (isDropped) proxy.dropped++;
        else client.write(part.bytes);
      }
    });
    const fromClient = new ProtocolSplitter();
    client.on('data', (bytes) => {
      for (const part of fromClient.push(bytes)) {
        // Its end, or a bound on it, waits as well.
        const isHeld =
          part.operation === 'UNSUB'
            ? held.some((one) => one.client === client && one.id === part.subject)
            : part.operation === 'SUB' && proxy.hold(part.subject);
        if (!isHeld) upstream.write(part.bytes);
        else held.push({ client, id: part.id, release: () => upstream.write(part.bytes) });
      }
    });
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
    hold: () => false,
    get held() {
      return held.length;
    },
    release() {
      for (const one of held.splice(0)) one.release();
    },
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

interface ProtocolPart {
  readonly bytes: Buffer;
  readonly operation: string;
  /** Of a message or a subscription; the id of the subscription that ends. */
  readonly subject: string;
  /** What a line says last: of a subscription its id. */
  readonly id: string;
  readonly carriesPayload: boolean;
}

const payloadOperations = new Set(['MSG', 'HMSG', 'PUB', 'HPUB']);

/** Cuts what one side sends into protocol messages. */
class ProtocolSplitter {
  #rest: Buffer = Buffer.alloc(0);

  push(bytes: Buffer): ProtocolPart[] {
    this.#rest = Buffer.concat([this.#rest, bytes]);
    const parts: ProtocolPart[] = [];
    for (;;) {
      const end = this.#rest.indexOf(newline);
      if (end < 0) return parts;
      const [operation = '', subject = '', ...others] = this.#rest.toString('latin1', 0, end).split(' ');
      const id = others.at(-1) ?? '';
      const carriesPayload = payloadOperations.has(operation);
      const length = end + 2 + (carriesPayload ? Number(id) + 2 : 0);
      if (this.#rest.length < length) return parts;
      parts.push({ bytes: this.#rest.subarray(0, length), operation, subject, id, carriesPayload });
      this.#rest = this.#rest.subarray(length);
    }
  }
}
