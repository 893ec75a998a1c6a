import { createInbox, type Msg } from 'nats';
import { matches } from '../protocol/topic.js';
import { historyPageBytesMax, type StoredMessage } from './bus.js';
import { unavailable } from './errors.js';
import { decodeBody } from './nats-body.js';
import type { NatsLink } from './nats-link.js';
import type { NatsStream, StreamState } from './nats-stream.js';
import type { Subjects } from './nats-subjects.js';

/** Part of a stream, in order. */
export interface StreamSlice {
  readonly messages: readonly StoredMessage[];
  /** Whether the stream holds more after it. */
  readonly more: boolean;
  /** The last sequence that was looked at; the asked one when there was nothing. */
  readonly lastRead: number;
}

/** No message for this long: the consumer is lost. */
const stallMsMax = 5000;
/** Cold reads at once: a hundred were seen to raise the latency of publishing from 3 to 684 ms. */
const readsMax = 4;
const inactiveNanos = 5e9;

/**
 * Reads history through short-lived push consumers: no acknowledgement, in memory, one copy. A hundred messages take 2–4 ms.
 */
export class NatsReader {
  readonly #link: NatsLink;
  readonly #subjects: Subjects;
  #reading = 0;
  readonly #queue: (() => void)[] = [];

  constructor(link: NatsLink, subjects: Subjects) {
    this.#link = link;
    this.#subjects = subjects;
  }

  /**
   * The messages of `filters` after `after`, at most `limit` and about a page of bytes.
   * @throws BrokerError `unavailable`
   */
  async read(
    stream: NatsStream,
    state: StreamState,
    filters: readonly string[],
    after: number,
    limit: number,
  ): Promise<StreamSlice> {
    if (after >= state.lastSeq) return { messages: [], more: false, lastRead: after };
    await this.#enter();
    try {
      return await this.#consume(stream, state, filters, after, limit);
    } finally {
      this.#leave();
    }
  }

  /**
   * The newest sequence of each topic among those in `(after, upTo]`, read without bodies.
   * @throws BrokerError `unavailable`
   */
  async scan(stream: NatsStream, after: number, upTo: number): Promise<ReadonlyMap<string, number>> {
    const newest = new Map<string, number>();
    if (after >= upTo) return newest;
    await this.#enter();
    const inbox = createInbox();
    try {
      await new Promise<void>((resolve, reject) => {
        const stall = setTimeout(() => reject(unavailable('an audit of the stream stalled')), stallMsMax);
        const end = (error?: unknown): void => {
          clearTimeout(stall);
          subscription.unsubscribe();
          if (error === undefined) resolve();
          else reject(unavailable('an audit of the stream failed', error));
        };
        const subscription = this.#link.nc.subscribe(inbox, {
          callback: (error, message) => {
            if (error !== null) return end(error);
            if (message.reply === undefined) return;
            const { pending, seq } = readAckSubject(message.reply);
            newest.set(this.#subjects.topicOf(message.subject), seq);
            stall.refresh();
            if (seq >= upTo || pending === 0) end();
          },
        });
        const config = { ...consumerConfig(inbox, after), headers_only: true };
        this.#link
          .api<{ num_pending: number }>(`CONSUMER.CREATE.${stream.name}`, {
            stream_name: stream.name,
            config,
          })
          .then(({ num_pending }) => num_pending === 0 && end(), end);
      });
    } finally {
      this.#leave();
    }
    return newest;
  }

  async #consume(
    stream: NatsStream,
    state: StreamState,
    filters: readonly string[],
    after: number,
    limit: number,
  ): Promise<StreamSlice> {
    const inbox = createInbox();
    const slice = new SliceCollector(this.#subjects, filters, after, limit);
    // The server sends as fast as it can: bound what may be under way when the page is full.
    const averageBytes = Math.max(1, state.bytes / Math.max(1, state.messages));
    const max =
      filters.length > 1 ? undefined : Math.min(limit, Math.ceil((2 * historyPageBytesMax) / averageBytes));
    const subscription = this.#link.nc.subscribe(inbox, {
      ...(max !== undefined && { max }),
      callback: (error, message) => {
        if (error !== null) slice.fail(unavailable('a read of the history failed', error));
        else slice.add(message);
      },
    });
    try {
      const created = await this.#link.api<{ num_pending: number }>(`CONSUMER.CREATE.${stream.name}`, {
        stream_name: stream.name,
        config: { ...consumerConfig(inbox, after), filter_subject: this.#filterOf(stream, filters) },
      });
      if (created.num_pending === 0) return slice.finish(false);
      return await slice.done(max ?? Infinity);
    } finally {
      // The server removes the consumer once nobody listens.
      subscription.unsubscribe();
      slice.close();
    }
  }

  #filterOf(stream: NatsStream, filters: readonly string[]): string {
    const [only, ...others] = filters;
    // Several subjects want a newer server; a group is read whole and filtered here.
    return this.#subjects.in(only !== undefined && others.length === 0 ? only : `${stream.namespace}.>`);
  }

  async #enter(): Promise<void> {
    if (this.#reading >= readsMax) await new Promise<void>((resolve) => this.#queue.push(resolve));
    else this.#reading++;
  }

  #leave(): void {
    const next = this.#queue.shift();
    if (next === undefined) this.#reading--;
    else next();
  }
}

function consumerConfig(inbox: string, after: number) {
  return {
    deliver_subject: inbox,
    deliver_policy: 'by_start_sequence',
    opt_start_seq: after + 1,
    ack_policy: 'none',
    max_deliver: 1,
    mem_storage: true,
    num_replicas: 1,
    inactive_threshold: inactiveNanos,
  };
}

/** Collects one page as its messages arrive. */
class SliceCollector {
  readonly #subjects: Subjects;
  readonly #filters: readonly string[];
  readonly #limit: number;
  readonly #messages: StoredMessage[] = [];
  #lastRead: number;
  #bytes = 0;
  #received = 0;
  #max = Infinity;
  #resolve: ((slice: StreamSlice) => void) | undefined;
  #reject: ((error: Error) => void) | undefined;
  #result: StreamSlice | undefined;
  #stall: NodeJS.Timeout | undefined;

  constructor(subjects: Subjects, filters: readonly string[], after: number, limit: number) {
    this.#subjects = subjects;
    this.#filters = filters;
    this.#lastRead = after;
    this.#limit = limit;
  }

  add(message: Msg): void {
    if (this.#result !== undefined || message.reply === undefined) return;
    const { pending, seq } = readAckSubject(message.reply);
    if (seq <= this.#lastRead) return;
    const topic = this.#subjects.topicOf(message.subject);
    if (this.#filters.some((filter) => matches(filter, topic))) {
      const body = decodeBody(message.data, message.headers);
      // What does not parse is no message to anybody.
      if (body.ok) {
        const prev = this.#messages.at(-1)?.offset ?? 0;
        this.#messages.push({ topic, payload: body.value, offset: seq, prev });
        this.#bytes += message.data.length;
      }
    }
    this.#lastRead = seq;
    this.#received++;
    this.#stall?.refresh();
    const full = this.#messages.length >= this.#limit || this.#bytes >= historyPageBytesMax;
    if (pending === 0) this.finish(false);
    else if (full || this.#received >= this.#max) this.finish(true);
  }

  finish(more: boolean): StreamSlice {
    this.#result ??= { messages: this.#messages, more, lastRead: this.#lastRead };
    this.#resolve?.(this.#result);
    return this.#result;
  }

  fail(error: Error): void {
    this.#reject?.(error);
  }

  /** @param max how many the subscription lets through */
  done(max: number): Promise<StreamSlice> {
    if (this.#result !== undefined) return Promise.resolve(this.#result);
    if (this.#received >= max) return Promise.resolve(this.finish(true));
    this.#max = max;
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#stall = setTimeout(() => reject(unavailable('a read of the history stalled')), stallMsMax);
    });
  }

  close(): void {
    clearTimeout(this.#stall);
  }
}

/** `$JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>`, with two more tokens in front of the stream on some servers. */
export function readAckSubject(reply: string): { seq: number; pending: number } {
  const tokens = reply.split('.');
  return {
    seq: Number(tokens[tokens.length >= 11 ? 7 : 5]),
    pending: Number(tokens[tokens.length >= 11 ? 10 : 8]),
  };
}
