import type { Codec } from '../../protocol/mod.js';
import { connect, payloadOf, valueOf, type Message, type TestClient } from './client.js';

/** Rates that do not come into the way of tests that send fast. */
export const unhurried = {
  TOPICAST_LIMIT_FRAMES_PER_SEC: '1000000',
  TOPICAST_LIMIT_FRAMES_BURST: '1000000',
  TOPICAST_CONNECT_RATE: '1000000',
} as const;

/** What one message of a `Publisher` says. */
export interface Numbered {
  readonly n: number;
}

/** Publishes numbered messages, and knows where each was stored. */
export class Publisher {
  readonly client: TestClient;
  /** By topic, in order: the number of each message and its offset (0 on live topics). */
  readonly sent = new Map<string, { n: number; offset: number }[]>();
  #next = 0;

  private constructor(client: TestClient) {
    this.client = client;
  }

  static async connect(port: number, codec: Codec, token?: string): Promise<Publisher> {
    return new Publisher(
      await connect({ port, codec, user: 'publisher', ...(token !== undefined && { token }) }),
    );
  }

  /** Sends a burst, one message to each topic in turn, and waits until all are accepted. */
  async burst(topics: readonly string[], count: number, filler = ''): Promise<void> {
    const first = this.#next;
    const from = this.client.frames.length;
    const topicOf = (n: number): string => topics[n % topics.length] ?? '';
    for (let i = 0; i < count; i++) {
      const n = this.#next++;
      const value = filler === '' ? { n } : { n, filler };
      this.client.send({
        type: 'publish',
        req: n,
        topic: topicOf(n),
        data: payloadOf(this.client.codec, value),
      });
    }
    await this.client.until('all are accepted', () => this.client.frames.length - from >= count);
    for (const frame of this.client.frames.splice(from)) {
      if (frame.type !== 'published' || frame.req === undefined || frame.req < first) {
        throw new Error(`not accepted: ${JSON.stringify(frame)}`);
      }
      const list = this.sent.get(frame.topic) ?? [];
      this.sent.set(frame.topic, list);
      list.push({ n: frame.req, offset: frame.offset ?? 0 });
    }
  }

  /** Publishes at a steady rate, 10 at a time, until told to end. Rejects when one is not accepted. @returns ends it, once the last is */
  steadily(topics: readonly string[], perSec: number): () => Promise<void> {
    let isOn = true;
    const run = async (): Promise<void> => {
      while (isOn) {
        const due = new Promise((resolve) => setTimeout(resolve, (10 * 1000) / perSec));
        await this.burst(topics, 10);
        await due;
      }
    };
    const running = run();
    return () => {
      isOn = false;
      return running;
    };
  }

  /** What a reader of a topic after an offset has to get. */
  after(topic: string, offset = 0): { n: number; offset: number }[] {
    return (this.sent.get(topic) ?? []).filter((message) => message.offset > offset);
  }
}

/** A message as `Publisher.sent` has it. */
export function numbered(message: Message): { n: number; offset: number } {
  return { n: (valueOf(message.data) as Numbered).n, offset: message.offset ?? 0 };
}
