import { request, type IncomingHttpHeaders } from 'node:http';
import { unpack } from 'msgpackr';
import { WebSocket } from 'ws';
import {
  jsonCodec,
  jsonPayload,
  msgpackCodec,
  transcode,
  type ClientFrame,
  type Codec,
  type Payload,
  type ServerFrame,
  type ServerFrameType,
} from '../../protocol/mod.js';
import { Signal } from './signal.js';

/** One frame type of the server. */
export type FrameOf<T extends ServerFrameType> = ServerFrame & { readonly type: T };
export type Message = FrameOf<'msg'>;

export interface ClientOptions {
  readonly port: number;
  /** `json` unless told. */
  readonly codec?: Codec;
  /** As in the query: topics, patterns, `topic@epoch:offset`. */
  readonly topics?: readonly string[];
  /** Goes into the `Authorization` header. */
  readonly token?: string;
  /** The user in open mode. */
  readonly user?: string;
  readonly device?: string;
  /** false: WebSocket pings are not answered. */
  readonly autoPong?: boolean;
  /** Sent in the very moment the socket opens, before `welcome` can have come. */
  readonly early?: readonly (string | Uint8Array)[];
}

/** A connection that collects what comes, and can wait for it. */
export class TestClient {
  readonly frames: ServerFrame[] = [];
  /** Those of type `msg` among them. */
  readonly messages: Message[] = [];
  /** What came and is not a frame of the protocol. */
  readonly faults: string[] = [];
  readonly signal = new Signal();
  readonly codec: Codec;
  readonly socket: WebSocket;
  /** How it ended; undefined while it lives. */
  end: { readonly code: number; readonly reason: string } | undefined;
  #req = 0;

  constructor(options: ClientOptions) {
    this.codec = options.codec ?? jsonCodec;
    this.socket = new WebSocket(connectUrl(options), this.codec.subprotocol, {
      perMessageDeflate: false,
      autoPong: options.autoPong ?? true,
      headers: options.token === undefined ? {} : { authorization: `Bearer ${options.token}` },
    });
    this.socket.binaryType = 'nodebuffer';
    this.socket.on('open', () => {
      for (const bytes of options.early ?? []) this.socket.send(bytes);
    });
    this.socket.on('message', (data: Buffer) => this.#receive(data));
    this.socket.on('close', (code, reason) => {
      this.end = { code, reason: reason.toString() };
      this.signal.notify();
    });
    // A close follows every error and is what tests look at.
    this.socket.on('error', () => this.signal.notify());
  }

  send(frame: ClientFrame): void {
    this.socket.send(this.codec.encodeClient(frame));
  }

  /** Sends a frame and waits for the first answer of a type that carries its `req`. */
  async ask<T extends 'subscribed' | 'unsubscribed' | 'published' | 'error'>(
    type: T,
    frame: DistributiveOmit<ClientFrame & { readonly req?: number }, 'req'>,
  ): Promise<FrameOf<T>> {
    const req = ++this.#req + 1_000_000;
    const from = this.frames.length;
    this.send({ ...frame, req } as ClientFrame);
    return this.frame(type, (answer) => answer.req === req, from);
  }

  /** Sends a ping and waits for its pong: everything sent before has been handled. */
  async ping(): Promise<FrameOf<'pong'>> {
    const from = this.frames.length;
    this.send({ type: 'ping' });
    return this.frame('pong', () => true, from);
  }

  /** The first frame of a type that fits, from an index of `frames` on; waits for it. Rejects when the connection ends first. */
  async frame<T extends ServerFrameType>(
    type: T,
    fits: (frame: FrameOf<T>) => boolean = () => true,
    from = 0,
  ): Promise<FrameOf<T>> {
    let found: FrameOf<T> | undefined;
    let looked = from;
    await this.until(`a frame of type ${type}`, () => {
      for (; found === undefined && looked < this.frames.length; looked++) {
        const frame = this.frames[looked];
        if (frame?.type === type && fits(frame as FrameOf<T>)) found = frame as FrameOf<T>;
      }
      return found !== undefined;
    });
    return found!;
  }

  /** Waits until `holds`; rejects when the connection ends first, or at the deadline. */
  until(what: string, holds: () => boolean): Promise<void> {
    return this.signal.until(what, () => {
      if (holds()) return true;
      if (this.end === undefined) return false;
      throw new Error(`closed with ${this.end.code} ${this.end.reason} before: ${what}`);
    });
  }

  /** Waits for the end of the connection, whoever ends it. */
  async ended(): Promise<{ readonly code: number; readonly reason: string }> {
    await this.signal.until('the end of the connection', () => this.end !== undefined);
    return this.end!;
  }

  ofType<T extends ServerFrameType>(type: T): FrameOf<T>[] {
    return this.frames.filter((frame): frame is FrameOf<T> => frame.type === type);
  }

  /** Ends the connection without a word, as a lost line does. */
  async cut(): Promise<void> {
    this.socket.terminate();
    await this.ended();
  }

  async close(): Promise<void> {
    this.socket.close();
    await this.ended();
  }

  #receive(data: Buffer): void {
    const frame = this.codec.decodeServer(data);
    if (frame.ok) {
      this.frames.push(frame.value);
      if (frame.value.type === 'msg') this.messages.push(frame.value);
    } else this.faults.push(`${frame.message}: ${data.toString('latin1').slice(0, 200)}`);
    this.signal.notify();
  }
}

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;

/** Connects and waits for `welcome`. */
export async function connect(options: ClientOptions): Promise<TestClient> {
  const client = new TestClient(options);
  await client.frame('welcome');
  return client;
}

export const codecs = [jsonCodec, msgpackCodec] as const;

/** A payload in the format of a codec, of a plain value. */
export function payloadOf(codec: Codec, value: unknown): Payload {
  if (codec.name === 'json') return must(jsonPayload(JSON.stringify(value)));
  // MessagePack clients send what crossing makes of the same JSON, so one value serves both.
  return transcode(must(jsonPayload(JSON.stringify(value))), 'msgpack');
}

/** A payload as a plain value. */
export function valueOf(payload: Payload): unknown {
  return payload.format === 'json' ? JSON.parse(payload.text) : unpack(Buffer.from(payload.bytes));
}

export interface Answer {
  /** 101 when the upgrade was accepted; the connection is then closed at once. */
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A handshake with exactly these headers and this query, and what is answered. */
export function handshake(port: number, query: string, headers: Record<string, string>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const req = request({
      host: '127.0.0.1',
      port,
      path: `/v1/connect${query === '' ? '' : `?${query}`}`,
      agent: false,
      headers: {
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-version': '13',
        'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
        ...headers,
      },
    });
    req.on('upgrade', (response, socket) => {
      socket.destroy();
      resolve({ status: 101, headers: response.headers, body: '' });
    });
    req.on('response', (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => (body += text));
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
      );
    });
    req.on('error', reject);
    req.end();
  });
}

function connectUrl({ device, port, topics, user }: ClientOptions): string {
  const url = new URL(`ws://127.0.0.1:${port}/v1/connect`);
  if (topics !== undefined) url.searchParams.set('topics', topics.join(','));
  if (user !== undefined) url.searchParams.set('user', user);
  if (device !== undefined) url.searchParams.set('device', device);
  return url.href;
}

function must(payload: { ok: true; value: Payload } | { ok: false; message: string }): Payload {
  if (!payload.ok) throw new Error(payload.message);
  return payload.value;
}
