import WebSocket from 'ws';
import { shouldReconnect } from '../../protocol/codes.js';
import type { Checker } from './checker.js';
import { Positions } from './positions.js';
import type { DemoUser } from './traffic.js';
import type { CodecName } from './verdict.js';
import { decode, encode, subprotocols, type Received, type Sent } from './wire.js';

/** Topics beyond this length of the query go in `subscribe` frames: the header block has room for 16 KiB, token included. */
const queryCharsMax = 6_000;
const topicsPerFrame = 100;
const connectMsMax = 60_000;

export interface UserHooks {
  /** The nodes; connections in a row go to one after the other. */
  readonly urls: readonly string[];
  readonly checker: Checker;
  /** A message arrived. */
  readonly progress: () => void;
  /** Something happened that may cost time but no message. */
  readonly note: (text: string) => void;
  /** The node broke a promise. */
  readonly fault: (text: string) => void;
  /** The run cannot go on. */
  readonly fail: (error: unknown) => void;
}

interface Connection {
  readonly socket: WebSocket;
  /** Topics whose `subscribed` is still to come. */
  readonly awaited: Set<string>;
  /** Topics that the query had no room for. */
  readonly later: readonly string[];
  /** The pings under way, with the direct messages that were acknowledged before each. */
  readonly pings: { readonly acked: readonly number[]; readonly answered: () => void }[];
  acked: number[];
  readonly number: number;
  readonly ready: () => void;
  bye: string;
}

/** One user of the data set. It keeps positions, acknowledges, and comes back with what it knows, as an SDK would. */
export class User {
  readonly name: string;
  connected = false;
  readonly #spec: DemoUser;
  readonly #codec: CodecName;
  readonly #token: string;
  readonly #hooks: UserHooks;
  readonly #positions = new Positions();
  /** Which of the nodes is the first. */
  readonly #index: number;
  #connection: Connection | undefined;
  #connections = 0;

  constructor(spec: DemoUser, index: number, codec: CodecName, token: string, hooks: UserHooks) {
    this.#index = index;
    this.name = spec.user;
    this.#spec = spec;
    this.#codec = codec;
    this.#token = token;
    this.#hooks = hooks;
  }

  /** Connects, with the positions held. Resolves when every topic has been answered with `subscribed`; rejects when it is not let in. */
  connect(): Promise<void> {
    const { query, later } = this.#handshake();
    const { urls } = this.#hooks;
    const node = urls[(this.#index + this.#connections) % urls.length] ?? '';
    const url = new URL(`/v1/connect?${query}`, node.replace(/^http/, 'ws'));
    const socket = new WebSocket(url, [subprotocols[this.#codec], `bearer.${this.#token}`], {
      perMessageDeflate: false,
    });
    return new Promise((resolve, reject) => {
      const awaited = new Set(this.#spec.topics);
      const timer = setTimeout(() => {
        reject(new Error(`${this.name}: no answer in 60 s for ${[...awaited].join(', ')}`));
      }, connectMsMax);
      const connection: Connection = {
        ...{ socket, awaited, later, pings: [], acked: [], bye: '', number: ++this.#connections },
        ready: () => resolve(clearTimeout(timer)),
      };
      this.#connection = connection;
      socket.on('error', (cause) =>
        reject(new Error(`${this.name} cannot connect: ${cause.message}`, { cause })),
      );
      socket.on('close', (code, reason) => {
        clearTimeout(timer);
        if (this.#connection !== connection) return;
        const why = `${this.name} was closed: ${code} ${reason.toString()}${connection.bye}`;
        if (this.connected) this.#comeBack(code, why).then(resolve, this.#hooks.fail);
        else reject(new Error(why));
      });
      socket.on('message', (data: Buffer, isBinary) => {
        // What was still on its way inside this process when the line was cut was not seen: the positions do not count it.
        if (this.#connection === connection) this.#read(connection, data, isBinary);
      });
    });
  }

  /** Cuts the line: the socket is gone at once, without a close frame. */
  cut(): void {
    this.#hooks.checker.cut(this.name, performance.now());
    this.#leave()?.terminate();
  }

  /** Ends the connection the proper way. */
  close(): void {
    this.#leave()?.close(1000);
  }

  /** Resolves when everything that the node sent to this user before has arrived, or the connection is gone. */
  barrier(): Promise<void> {
    return new Promise((answered) => this.#ping(answered));
  }

  /** The query of the handshake, and the topics that it has no room for. */
  #handshake(): { query: string; later: string[] } {
    const named: string[] = [];
    const later: string[] = [];
    let chars = 0;
    for (const topic of this.#spec.topics) {
      const text = this.#positions.inQuery(topic);
      chars += encodeURIComponent(text).length + 3;
      if (chars <= queryCharsMax) named.push(text);
      else later.push(topic);
    }
    const topics = encodeURIComponent(named.join(','));
    return { query: `device=${encodeURIComponent(this.#spec.device)}&topics=${topics}`, later };
  }

  #leave(): WebSocket | undefined {
    const connection = this.#connection;
    this.#connection = undefined;
    this.connected = false;
    for (const ping of connection?.pings ?? []) ping.answered();
    return connection?.socket;
  }

  /** After a close that nobody here asked for. */
  async #comeBack(code: number, why: string): Promise<void> {
    this.#leave();
    this.#hooks.checker.cut(this.name, performance.now());
    if (!shouldReconnect(code)) throw new Error(why);
    this.#hooks.note(why);
    await this.connect();
  }

  #ping(answered: () => void): void {
    const connection = this.#connection;
    if (connection === undefined || !this.connected) {
      answered();
      return;
    }
    connection.pings.push({ acked: connection.acked, answered });
    connection.acked = [];
    this.#send({ type: 'ping' });
  }

  #send(frame: Sent): void {
    this.#connection?.socket.send(encode(this.#codec, frame));
  }

  #read(connection: Connection, data: Buffer, isBinary: boolean): void {
    try {
      const frame = decode(this.#codec, data, isBinary);
      if (frame === undefined) return;
      if (!this.connected && frame.type !== 'welcome') this.#fault(`got ${frame.type} before welcome`);
      this.#receive(connection, frame);
    } catch (cause) {
      this.#hooks.fail(new Error(`${this.name} cannot read a frame: ${String(cause)}`, { cause }));
    }
  }

  #receive(connection: Connection, frame: Received): void {
    switch (frame.type) {
      case 'welcome':
        this.connected = true;
        this.#subscribe(connection.later);
        this.#whenReady(connection);
        break;
      case 'subscribed':
        for (const answer of frame.topics) {
          this.#fault(this.#positions.subscribed(answer));
          connection.awaited.delete(answer.topic);
        }
        this.#whenReady(connection);
        break;
      case 'msg':
        this.#hooks.checker.message(this.name, frame.topic, frame.data, frame.offset);
        this.#hooks.progress();
        if (frame.offset !== undefined) {
          this.#fault(this.#positions.message(frame.topic, frame.offset, frame.pattern));
        }
        break;
      case 'direct':
        this.#hooks.checker.direct(this.name, frame.id, frame.data, connection.number);
        this.#hooks.progress();
        if (frame.id !== undefined) this.#acknowledge(connection, frame.id);
        break;
      case 'pong': {
        const ping = connection.pings.shift();
        this.#positions.floors(frame.floors ?? {});
        this.#hooks.checker.confirmed(this.name, ping?.acked ?? []);
        ping?.answered();
        break;
      }
      case 'gap':
        this.#fault(`was told of a gap in ${frame.topic} from ${frame.from} to ${frame.to}`);
        this.#positions.advance(frame.topic, frame.to);
        break;
      case 'resync':
        this.#hooks.note(`${this.name} fell behind on ${frame.topics.join(', ')}`);
        this.#subscribe(frame.topics);
        break;
      case 'error':
        this.#fault(`was told ${frame.code}: ${frame.message}`);
        break;
      case 'unsubscribed':
        this.#fault(`was unsubscribed from ${frame.topics.join(', ')}`);
        break;
      case 'bye':
        connection.bye = ` (bye: ${frame.code} ${frame.reason})`;
        break;
      case 'published':
      case 'expiring':
        break;
    }
  }

  #fault(text: string | undefined): void {
    if (text !== undefined) this.#hooks.fault(`${this.name} ${text}`);
  }

  /** An acknowledgement has no answer of its own; the pong to a ping behind it says that it was taken. */
  #acknowledge(connection: Connection, id: number): void {
    connection.acked.push(id);
    this.#send({ type: 'ack', ids: [id] });
    this.#ping(() => undefined);
  }

  #subscribe(topics: readonly string[]): void {
    for (let i = 0; i < topics.length; i += topicsPerFrame) {
      const part = topics.slice(i, i + topicsPerFrame).map((topic) => this.#positions.request(topic));
      this.#send({ type: 'subscribe', topics: part });
    }
  }

  #whenReady(connection: Connection): void {
    if (connection.awaited.size > 0) return;
    if (connection.number > 1) this.#hooks.checker.back(this.name, performance.now());
    connection.ready();
  }
}
