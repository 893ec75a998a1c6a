import { WebSocket } from 'ws';
import { connect, type Client, type ClientOptions } from '../../client/mod.js';
import { Signal } from './signal.js';

/** A client of the SDK over `ws`, with its sockets at hand: to cut them, and to look at what they asked for. */
export class SdkClient {
  readonly client: Client;
  /** Wakes after every event and whenever a test says so. */
  readonly signal = new Signal();
  /** Every address connected to so far. */
  readonly urls: string[] = [];
  /** Every event but messages, by name, in order. */
  readonly events: [name: string, event: unknown][] = [];
  #socket: WebSocket | undefined;

  constructor(port: number, options: ClientOptions = {}) {
    const webSocket = (url: string, protocols: string[]): WebSocket => {
      this.urls.push(url);
      this.#socket = new WebSocket(url, protocols, { perMessageDeflate: false });
      this.signal.notify();
      return this.#socket;
    };
    const backoff = { baseMs: 20, maxMs: 200 };
    this.client = connect(`http://127.0.0.1:${port}`, { webSocket, backoff, ...options });
    for (const name of noted) {
      this.client.on(name, (event) => {
        this.events.push([name, event]);
        this.signal.notify();
      });
    }
  }

  /** Ends the connection, or the try, without a word, as a lost line does. */
  cut(): void {
    this.#socket?.terminate();
  }

  of(name: (typeof noted)[number]): unknown[] {
    return this.events.filter(([of]) => of === name).map(([, event]) => event);
  }

  async until(what: string, holds: () => boolean, deadlineMs?: number): Promise<void> {
    try {
      await this.signal.until(what, holds, deadlineMs);
    } catch (cause) {
      throw new Error(`${what}: last events: ${JSON.stringify(this.events.slice(-20))}`, { cause });
    }
  }

  /** Waits until the topics are listened to, `times` times each. */
  subscribed(topics: readonly string[], times = 1): Promise<void> {
    return this.until(`subscribed to ${topics.join(', ')}`, () => {
      const told = this.of('subscribed') as { topic: string }[];
      return topics.every((topic) => told.filter((of) => of.topic === topic).length >= times);
    });
  }
}

const noted = ['state', 'subscribed', 'gap', 'unrecovered', 'refused', 'expiring', 'error'] as const;
