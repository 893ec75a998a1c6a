import WebSocket from 'ws';
import { jsonCodec, type ServerFrame } from '../../protocol/mod.js';
import { valueOf } from './client.js';
import { Signal } from './signal.js';
import { signToken } from './tokens.js';

export interface ResumingClientOptions {
  readonly user: string;
  readonly topics: readonly string[];
  /** Where the next connection goes. */
  readonly nextPort: () => number;
  /** Comes back by itself after a close that it did not ask for; false counts such a close as a fault. */
  readonly reconnects: boolean;
}

const retryMs = 50;

/**
 * A client as an SDK is: it keeps the position of each topic, comes back with them, and takes down all that it gets. The data of each topic
 * are whole numbers that count up from 0, so every loss, repetition and change of order shows at once.
 */
export class ResumingClient {
  readonly user: string;
  readonly signal = new Signal();
  /** How many numbers of each topic have come, in order. */
  readonly counts = new Map<string, number>();
  readonly faults: string[] = [];
  /** Closes that this client did not ask for. */
  closes = 0;
  connections = 0;
  readonly #options: ResumingClientOptions;
  readonly #positions = new Map<string, { epoch: string; offset: number }>();
  readonly #awaited = new Set<string>();
  #token = '';
  #socket: WebSocket | undefined;
  #ended = false;

  constructor(options: ResumingClientOptions) {
    this.#options = options;
    this.user = options.user;
    for (const topic of options.topics) this.counts.set(topic, 0);
  }

  get total(): number {
    let total = 0;
    for (const count of this.counts.values()) total += count;
    return total;
  }

  /** Connects with the positions held; resolves when each topic has been answered. */
  async connect(): Promise<void> {
    if (this.#token === '') this.#token = await signToken({ sub: this.user, can: { sub: ['>'] } });
    this.#ended = false;
    this.#open();
    await this.ready();
  }

  /** Resolves when it is connected and each topic has been answered. */
  ready(): Promise<void> {
    return this.signal.until(`${this.user} is subscribed`, () => this.#isReady());
  }

  /** Ends the connection without a word and stays away. What was on its way is not seen. */
  cut(): void {
    this.#ended = true;
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.terminate();
  }

  #isReady(): boolean {
    return this.#socket?.readyState === WebSocket.OPEN && this.#awaited.size === 0;
  }

  #open(): void {
    const url = new URL(`ws://127.0.0.1:${this.#options.nextPort()}/v1/connect`);
    const named = this.#options.topics.map((topic) => {
      const position = this.#positions.get(topic);
      return position === undefined ? topic : `${topic}@${position.epoch}:${position.offset}`;
    });
    url.searchParams.set('topics', named.join(','));
    this.#awaited.clear();
    for (const topic of this.#options.topics) this.#awaited.add(topic);
    const socket = new WebSocket(url, jsonCodec.subprotocol, {
      perMessageDeflate: false,
      headers: { authorization: `Bearer ${this.#token}` },
    });
    this.#socket = socket;
    this.connections++;
    socket.binaryType = 'nodebuffer';
    socket.on('message', (data: Buffer) => {
      if (this.#socket !== socket) return;
      const frame = jsonCodec.decodeServer(data);
      if (frame.ok) this.#receive(frame.value);
      else this.faults.push(frame.message);
      this.signal.notify();
    });
    // A close follows each error.
    socket.on('error', () => undefined);
    socket.on('close', (code, reason) => this.#onClose(socket, `${code} ${reason.toString()}`));
  }

  #onClose(socket: WebSocket, how: string): void {
    if (this.#socket !== socket || this.#ended) return;
    this.closes++;
    this.#socket = undefined;
    this.signal.notify();
    if (!this.#options.reconnects) this.faults.push(`closed: ${how}`);
    else {
      setTimeout(() => {
        if (!this.#ended && this.#socket === undefined) this.#open();
      }, retryMs);
    }
  }

  #receive(frame: ServerFrame): void {
    if (frame.type === 'msg') {
      this.#count(frame.topic, valueOf(frame.data), frame.offset ?? 0);
    } else if (frame.type === 'subscribed') {
      for (const answer of frame.topics) {
        this.#awaited.delete(answer.topic);
        if ('epoch' in answer) {
          if (this.#positions.has(answer.topic) && !answer.recovered) {
            this.faults.push(`${answer.topic} not recovered`);
          }
          this.#positions.set(answer.topic, { epoch: answer.epoch, offset: answer.offset });
        } else if ('error' in answer) this.faults.push(`${answer.topic}: ${answer.error}`);
      }
    } else if (frame.type === 'gap' || frame.type === 'error' || frame.type === 'resync') {
      this.faults.push(JSON.stringify(frame));
    }
  }

  #count(topic: string, value: unknown, offset: number): void {
    const position = this.#positions.get(topic);
    if (position !== undefined) {
      if (offset <= position.offset) this.faults.push(`${topic} ${offset} came after ${position.offset}`);
      position.offset = offset;
    }
    const expected = this.counts.get(topic) ?? 0;
    if (value !== expected) this.faults.push(`${topic}: ${String(value)} came, expected ${expected}`);
    this.counts.set(topic, Number(value) + 1);
  }
}
