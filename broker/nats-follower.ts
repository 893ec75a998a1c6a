import { createInbox, type Msg, type Subscription } from 'nats';
import { unavailable } from './errors.js';
import { consumerRequest, consumerStatus, deliveredPlace } from './nats-consumer.js';
import type { NatsLink } from './nats-link.js';
import type { NatsStream } from './nats-stream.js';
import type { Subjects } from './nats-subjects.js';

export interface NatsFollowersParts {
  readonly link: NatsLink;
  readonly subjects: Subjects;
  readonly stream: NatsStream;
  /** A stored message for those interests that ride on the consumer, whose filters may be narrower than it. */
  readonly onMessage: (keys: Iterable<string>, topic: string, seq: number, message: Msg) => void;
  readonly onFault: (error: unknown) => void;
}

const heartbeatMs = 1000;
/** After this long without a message or heartbeat the consumer is taken for lost. */
const silenceMsMax = 3000;
const retryMs = 500;
/** A request that a cluster without a leader has dropped is better asked again soon. */
const createMsMax = 2000;

/**
 * One push consumer that reads a stream in order, and is replaced from where it was whenever something is missing or it falls silent. Made by hand: the
 * client's own ordered consumer gives up for good when it cannot be made again at once, and headers that somebody published can throw inside of it.
 */
export class NatsFollower {
  readonly filter: string;
  /** The interests that ride on it, each with the filter that it needs. */
  readonly keys = new Map<string, string>();
  readonly #parts: NatsFollowersParts;
  #last = 0;
  #deliveries = 0;
  #generation = 0;
  #heardAt = 0;
  #subscription: Subscription | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: NatsFollowersParts, filter: string) {
    this.#parts = parts;
    this.filter = filter;
  }

  /** The last sequence it has handed on; everything of the filter up to it was. */
  get last(): number {
    return this.#last;
  }

  /**
   * Goes on after `after`. When that fails it goes on trying by itself.
   * @throws BrokerError `unavailable`, JetStreamError
   */
  async start(after: number): Promise<void> {
    this.stop();
    this.#last = after;
    await this.#open();
  }

  stop(): void {
    this.#generation++;
    clearTimeout(this.#timer);
    // The server removes a consumer that nobody listens to.
    this.#subscription?.unsubscribe();
    this.#subscription = undefined;
  }

  async #open(): Promise<void> {
    const generation = this.#generation;
    const { link, stream, subjects } = this.#parts;
    const inbox = createInbox();
    this.#deliveries = 0;
    this.#subscription = link.subscribe(
      inbox,
      (message) => {
        if (generation === this.#generation) this.#receive(message);
      },
      (error) => this.#parts.onFault(error),
    );
    const request = consumerRequest(stream, inbox, this.#last, {
      filter_subject: subjects.in(this.filter),
      idle_heartbeat: heartbeatMs * 1e6,
      flow_control: true,
    });
    try {
      await link.api(`CONSUMER.CREATE.${stream.name}`, request, createMsMax);
    } catch (error) {
      if (generation === this.#generation) this.#reopen(retryMs);
      throw error;
    }
    if (generation !== this.#generation) return;
    this.#heardAt = performance.now();
    this.#watch();
  }

  #watch(): void {
    this.#timer = setTimeout(() => {
      const silence = performance.now() - this.#heardAt;
      if (silence > silenceMsMax) this.#replace('has fallen silent');
      else this.#watch();
    }, heartbeatMs).unref();
  }

  #receive(message: Msg): void {
    this.#heardAt = performance.now();
    const place = deliveredPlace(message.reply);
    if (place === undefined) return this.#onStatus(message);
    if (place.delivery !== this.#deliveries + 1) return this.#replace('has left something out');
    this.#deliveries = place.delivery;
    if (place.seq <= this.#last) return;
    this.#last = place.seq;
    this.#parts.onMessage(
      this.keys.keys(),
      this.#parts.subjects.topicOf(message.subject),
      place.seq,
      message,
    );
  }

  /** A heartbeat, which tells how many were delivered; or a question whether this side keeps up, which wants an answer. */
  #onStatus(message: Msg): void {
    const status = consumerStatus(message);
    if (status === undefined) return;
    const { delivered, stalled } = status;
    if (message.reply !== undefined && message.reply !== '') message.respond();
    else if (stalled !== undefined) this.#parts.link.nc.publish(stalled);
    if (delivered !== undefined && delivered !== this.#deliveries) this.#replace('has left out its last');
  }

  #replace(why: string): void {
    this.#parts.onFault(unavailable(`the consumer of ${this.filter} ${why} and is replaced`));
    this.#reopen(0);
  }

  #reopen(delayMs: number): void {
    this.stop();
    this.#timer = setTimeout(() => {
      this.#open().catch(this.#parts.onFault);
    }, delayMs).unref();
  }
}
