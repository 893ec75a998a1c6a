import { request, type IncomingMessage } from 'node:http';
import { Signal } from './signal.js';

/** One event as a browser would see it; `event` is `message` when it has no name. */
export interface StreamEvent {
  readonly event: string;
  readonly data: string;
  /** The last id so far, as an `EventSource` keeps it; '' when there was none. */
  readonly lastId: string;
}

/** A reader of Server-Sent Events that can wait for them. */
export class EventStream {
  readonly events: StreamEvent[] = [];
  readonly comments: string[] = [];
  readonly signal = new Signal();
  readonly response: IncomingMessage;
  ended = false;
  #lastId = '';
  #rest = '';

  constructor(response: IncomingMessage) {
    this.response = response;
    response.setEncoding('utf8').on('data', (text: string) => this.#feed(text));
    // A cut line ends it as well.
    response.on('error', () => undefined);
    response.on('close', () => {
      this.ended = true;
      this.signal.notify();
    });
  }

  get lastId(): string {
    return this.#lastId;
  }

  /** The data of default events. */
  get messages(): string[] {
    return this.events.filter(({ event }) => event === 'message').map(({ data }) => data);
  }

  until(what: string, holds: () => boolean): Promise<void> {
    return this.signal.until(what, holds);
  }

  /** Waits for the first event of a name, from an index of `events` on. */
  async named(name: string, from = 0): Promise<StreamEvent> {
    const find = () => this.events.slice(from).find(({ event }) => event === name);
    await this.until(`an event named ${name}`, () => find() !== undefined);
    return find()!;
  }

  close(): void {
    this.response.destroy();
  }

  #feed(text: string): void {
    const blocks = (this.#rest + text).split('\n\n');
    this.#rest = blocks.pop() ?? '';
    for (const block of blocks) this.#block(block);
    this.signal.notify();
  }

  #block(block: string): void {
    let event = 'message';
    const data: string[] = [];
    for (const line of block.split('\n')) {
      const colon = line.indexOf(':');
      const value = line.slice(colon + 1).replace(/^ /, '');
      if (colon === 0) this.comments.push(value);
      else if (line.startsWith('id:')) this.#lastId = value;
      else if (line.startsWith('event:')) event = value;
      else if (line.startsWith('data:')) data.push(value);
    }
    if (data.length > 0) this.events.push({ event, data: data.join('\n'), lastId: this.#lastId });
  }
}

/** Asks for a stream and answers the response, which may be a refusal. */
export function requestStream(
  port: number,
  query: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const req = request({ host: '127.0.0.1', port, path: `/v1/events?${query}`, headers, agent: false });
    req.on('response', resolve);
    req.on('error', reject);
    req.end();
  });
}

/** Opens a stream and waits until all its topics are subscribed. */
export async function openStream(
  port: number,
  topics: readonly string[],
  headers: Readonly<Record<string, string>> = {},
): Promise<EventStream> {
  const query = `topics=${encodeURIComponent(topics.join(','))}`;
  const response = await requestStream(port, query, headers);
  if (response.statusCode !== 200) throw new Error(`the stream was answered ${response.statusCode}`);
  const stream = new EventStream(response);
  await stream.named('subscribed');
  return stream;
}
