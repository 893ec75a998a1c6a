import { connect, type Socket } from 'node:net';

/** Hears what others publish, and counts it by subject. */
export interface NatsListener {
  /** Messages so far, by what `kindOf` makes of their subjects. */
  readonly counts: ReadonlyMap<string, number>;
  /** Settles when everything that the server had for this connection has been counted. */
  flush(): Promise<void>;
  close(): void;
}

/**
 * Subscribes to a subject over a plain connection. Heard in this way, requests to JetStream (`$JS.API.>`) are counted by what they ask, which no
 * monitoring page of NATS tells.
 * @param url `nats://host:port` @throws Error when it cannot connect
 */
export async function listenToNats(
  url: string,
  subject: string,
  kindOf: (subject: string) => string,
): Promise<NatsListener> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.once('connect', resolve);
  });
  const listener = new Listener(socket, kindOf);
  socket.write(`CONNECT {"verbose":false,"pedantic":false,"headers":true}\r\nSUB ${subject} 1\r\n`);
  await listener.flush();
  return listener;
}

class Listener implements NatsListener {
  readonly counts = new Map<string, number>();
  readonly #socket: Socket;
  readonly #kindOf: (subject: string) => string;
  readonly #pongs: { readonly resolve: () => void; readonly reject: (error: Error) => void }[] = [];
  #rest: Buffer = Buffer.alloc(0);
  #error: Error | undefined;

  constructor(socket: Socket, kindOf: (subject: string) => string) {
    this.#socket = socket;
    this.#kindOf = kindOf;
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
    socket.on('error', (error) => this.#fail(error));
    socket.on('close', () => this.#fail(new Error('NATS closed the connection of the listener')));
  }

  flush(): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#error !== undefined) return reject(this.#error);
      this.#pongs.push({ resolve, reject });
      this.#socket.write('PING\r\n');
    });
  }

  close(): void {
    this.#socket.removeAllListeners('close');
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    for (let end = bytes.indexOf('\r\n'); end >= 0; end = bytes.indexOf('\r\n')) {
      const words = bytes.toString('latin1', 0, end).split(/\s+/);
      const isMessage = words[0] === 'MSG' || words[0] === 'HMSG';
      // The last word of a message's head is the size of what follows.
      const next = end + 2 + (isMessage ? Number(words.at(-1)) + 2 : 0);
      if (bytes.length < next) break;
      bytes = bytes.subarray(next);
      if (isMessage) this.#count(words[1] ?? '');
      else if (words[0] === 'PING') this.#socket.write('PONG\r\n');
      else if (words[0] === 'PONG') this.#pongs.shift()?.resolve();
      else if (words[0] === '-ERR') this.#fail(new Error(`NATS refused the listener: ${words.join(' ')}`));
    }
    this.#rest = bytes;
  }

  #count(subject: string): void {
    const kind = this.#kindOf(subject);
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
  }

  #fail(error: Error): void {
    this.#error ??= error;
    for (const { reject } of this.#pongs.splice(0)) reject(this.#error);
  }
}

/** `$JS.API.CONSUMER.CREATE.stream.name` → `CONSUMER.CREATE` */
export function jetStreamKind(subject: string): string {
  return subject.split('.').slice(2, 4).join('.');
}

/** What came between two looks at the counts. */
export function countsBetween(
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
): Map<string, number> {
  const between = new Map<string, number>();
  for (const [kind, count] of after) {
    const more = count - (before.get(kind) ?? 0);
    if (more !== 0) between.set(kind, more);
  }
  return between;
}
