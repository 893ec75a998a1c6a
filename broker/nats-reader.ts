import { createInbox, type Msg } from 'nats';
import { matches } from '../protocol/topic.js';
import { historyPageBytesMax, historyPageMessagesMax, type StoredMessage } from './bus.js';
import { unavailable } from './errors.js';
import { decodeBody } from './nats-body.js';
import { consumerRequest, consumerStatus, deliveredPlace, type DeliveredPlace } from './nats-consumer.js';
import type { NatsLink } from './nats-link.js';
import type { NatsStream, StreamState } from './nats-stream.js';
import type { Subjects } from './nats-subjects.js';

/** Part of a stream, in order. */
export interface StreamSlice {
  readonly messages: readonly StoredMessage[];
  /** Whether the copy of the stream that was read holds more after it. */
  readonly more: boolean;
  /** The last sequence that was looked at; the asked one when there was nothing. */
  readonly lastRead: number;
}

export interface StreamScan {
  /** The newest sequence of each topic. */
  readonly newest: ReadonlyMap<string, number>;
  readonly lastRead: number;
}

/** No message and no heartbeat for this long: the consumer is lost. */
const stallMsMax = 5000;
/** A consumer that has nothing to deliver says so after this long. The server allows 100 ms and more. */
const heartbeatMs = 200;
/** Cold reads at once: a hundred were seen to raise the latency of publishing from 3 to 684 ms. */
const readsMax = 4;

/**
 * Reads history through short-lived push consumers: no acknowledgement, in memory, one copy. A hundred messages take 2–4 ms.
 * A consumer may sit on a copy that lags behind the leader, so that nothing is pending there proves nothing. Messages may also be dropped after the consumer
 * has counted them and before it delivers them; it then falls silent but for its heartbeats, and the read ends with what there was.
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
   * @param state of some time ago, from which the size of messages is guessed
   * @throws BrokerError `unavailable`
   */
  async read(
    stream: NatsStream,
    state: StreamState,
    filters: readonly string[],
    after: number,
    limit: number,
  ): Promise<StreamSlice> {
    const slice = new SliceCollector(this.#subjects, filters, after, limit);
    // The server sends as fast as it can: bound what may be under way when the page is full.
    const averageBytes = Math.max(1, state.bytes / Math.max(1, state.messages));
    const max =
      filters.length > 1 ? undefined : Math.min(limit, Math.ceil((2 * historyPageBytesMax) / averageBytes));
    const filter = { filter_subject: this.#filterOf(stream, filters) };
    const more = await this.#consume(
      stream,
      after,
      filter,
      (message, place) => slice.add(message, place),
      max,
    );
    return slice.result(more);
  }

  /**
   * The last `count` messages of `filters` up to `newest`, as far as the copy that is read goes. Reads in growing windows from the end, since a stream can
   * only be read forwards.
   * @throws BrokerError `unavailable`
   */
  async last(
    stream: NatsStream,
    state: StreamState,
    filters: readonly string[],
    newest: number,
    count: number,
  ): Promise<StreamSlice> {
    const oldest = Math.max(state.firstSeq - 1, 0);
    for (let window = count * 4; ; window *= 8) {
      const after = Math.max(oldest, newest - window);
      const messages: StoredMessage[] = [];
      let lastRead = after;
      for (let more = true; more && lastRead < newest;) {
        const page = await this.read(stream, state, filters, lastRead, historyPageMessagesMax);
        messages.push(...page.messages);
        messages.splice(0, messages.length - count);
        more = page.more && page.lastRead > lastRead;
        lastRead = page.lastRead;
      }
      if (messages.length >= count || after <= oldest) return { messages, more: false, lastRead };
    }
  }

  /**
   * The newest sequence of each topic among those in `(after, upTo]`, read without bodies.
   * @throws BrokerError `unavailable`
   */
  async scan(stream: NatsStream, after: number, upTo: number): Promise<StreamScan> {
    const newest = new Map<string, number>();
    let lastRead = after;
    if (after >= upTo) return { newest, lastRead };
    await this.#consume(stream, after, { headers_only: true }, ({ subject }, { seq }) => {
      newest.set(this.#subjects.topicOf(subject), seq);
      lastRead = seq;
      return seq >= upTo;
    });
    return { newest, lastRead };
  }

  /**
   * Hands over message by message until `onMessage` answers that it has enough, the consumer has no more, or `max` have come.
   * @returns whether there are more
   */
  async #consume(
    stream: NatsStream,
    after: number,
    config: object,
    onMessage: (message: Msg, place: DeliveredPlace) => boolean,
    max = Infinity,
  ): Promise<boolean> {
    await this.#enter();
    try {
      return await new Promise<boolean>((resolve, reject) => {
        const inbox = createInbox();
        const end = (settle: () => void): void => {
          clearTimeout(stall);
          // The server removes the consumer once nobody listens.
          subscription.unsubscribe();
          settle();
        };
        const fail = (error: unknown): void =>
          end(() => reject(unavailable('a read of the stream failed', error)));
        let received = 0;
        const onStatus = (message: Msg): void => {
          const delivered = consumerStatus(message)?.delivered;
          if (delivered === undefined) return;
          // It comes behind all that was delivered before, on the same way.
          if (delivered === received) end(() => resolve(false));
          else fail(new Error('something was lost at the end'));
        };
        const receive = (message: Msg): void => {
          const place = deliveredPlace(message.reply);
          if (place === undefined) return onStatus(message);
          if (place.delivery !== ++received) return fail(new Error('something was lost on the way'));
          stall.refresh();
          const enough = onMessage(message, place);
          if (enough || place.pending === 0 || received >= max) end(() => resolve(place.pending > 0));
        };
        const subscription = this.#link.subscribe(inbox, receive, fail, max === Infinity ? undefined : max);
        const stall = setTimeout(() => fail(new Error('it stalled')), stallMsMax);
        this.#link
          .api<{ num_pending: number }>(
            `CONSUMER.CREATE.${stream.name}`,
            consumerRequest(stream, inbox, after, { ...config, idle_heartbeat: heartbeatMs * 1e6 }),
          )
          .then(({ num_pending }) => {
            if (num_pending === 0 && received === 0) end(() => resolve(false));
          }, fail);
      });
    } finally {
      this.#leave();
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

/** Collects one page as its messages arrive. */
class SliceCollector {
  readonly #subjects: Subjects;
  readonly #filters: readonly string[];
  readonly #limit: number;
  readonly #messages: StoredMessage[] = [];
  #lastRead: number;
  #bytes = 0;

  constructor(subjects: Subjects, filters: readonly string[], after: number, limit: number) {
    this.#subjects = subjects;
    this.#filters = filters;
    this.#lastRead = after;
    this.#limit = limit;
  }

  /** Whether the page is full. */
  add(message: Msg, { seq }: DeliveredPlace): boolean {
    this.#lastRead = seq;
    const topic = this.#subjects.topicOf(message.subject);
    if (this.#filters.some((filter) => matches(filter, topic))) {
      const body = decodeBody(message);
      // What does not parse is no message to anybody.
      if (body.ok) {
        const prev = this.#messages.at(-1)?.offset ?? 0;
        this.#messages.push({ topic, payload: body.value, offset: seq, prev });
        this.#bytes += message.data.length;
      }
    }
    return this.#messages.length >= this.#limit || this.#bytes >= historyPageBytesMax;
  }

  result(more: boolean): StreamSlice {
    return { messages: this.#messages, more, lastRead: this.#lastRead };
  }
}
