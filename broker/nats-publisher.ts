import { createInbox, type Msg, type MsgHdrs, type NatsConnection, type Subscription } from 'nats';
import { BrokerError, unavailable } from './errors.js';
import { readAck, type AckOutcome, type PublishAck } from './nats-ack.js';
import type { NatsLink } from './nats-link.js';
import { sendAll, type StreamMessage } from './nats-wire.js';

/** The outcome of a publish is not known: it may have been stored. */
export class UnknownOutcome extends BrokerError {
  constructor(message: string) {
    super('unavailable', message);
    this.name = 'UnknownOutcome';
  }
}

const sweepMs = 250;

/**
 * Publishes to streams and waits for their acknowledgements on one subscription of its own, `<inbox>.<number>`, and `<inbox>.<number>-<index>` for one of
 * several that were published together. However many they are, they wait in one entry of a map: no request object, promise or timer for each.
 */
export class NatsPublisher {
  readonly #nc: NatsConnection;
  readonly #ackMsMax: number;
  readonly #inbox = createInbox();
  /** In the order of their deadlines, as all wait equally long. */
  readonly #waiting = new Map<number, Outcomes>();
  readonly #sweeper: NodeJS.Timeout;
  readonly #acks: Subscription;
  #counter = 0;

  constructor(link: Pick<NatsLink, 'nc' | 'subscribe'>, onFault: (error: unknown) => void, ackMsMax = 5000) {
    this.#nc = link.nc;
    this.#ackMsMax = ackMsMax;
    this.#acks = link.subscribe(`${this.#inbox}.*`, (message) => this.#onAck(message), onFault);
    this.#sweeper = setInterval(() => this.#sweep(), sweepMs).unref();
  }

  /** @throws BrokerError `unavailable` (refused, not stored), `UnknownOutcome` */
  async publish(
    subject: string,
    body: string | Uint8Array,
    headers: MsgHdrs | undefined,
  ): Promise<PublishAck> {
    const number = ++this.#counter;
    const outcomes = this.#expect(number, 1);
    try {
      const reply = `${this.#inbox}.${number}`;
      this.#nc.publish(subject, body, headers === undefined ? { reply } : { reply, headers });
    } catch (error) {
      this.#settle(number, 0, notTaken(error));
    }
    const [outcome] = await outcomes.all;
    if (outcome instanceof BrokerError) throw outcome;
    if (outcome === undefined) throw new Error('a publish settled without an outcome');
    return outcome;
  }

  /** The same for several messages, sent in their order. Does not reject: the errors of `publish` are among the outcomes. */
  publishAll(messages: readonly StreamMessage[]): Promise<readonly AckOutcome[]> {
    if (messages.length === 0) return Promise.resolve([]);
    const number = ++this.#counter;
    const outcomes = this.#expect(number, messages.length);
    sendAll(
      this.#nc,
      messages,
      (index) => `${this.#inbox}.${number}-${index}`,
      (index, error) => this.#settle(number, index, notTaken(error)),
    );
    return outcomes.all;
  }

  /** The connection was lost with everything that was under way. */
  onDisconnected(): void {
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const outcomes of waiting) outcomes.fail('NATS was lost before it acknowledged');
  }

  /** Resolves when nothing is under way any more. */
  async settled(): Promise<void> {
    while (this.#waiting.size > 0) await new Promise((resolve) => setTimeout(resolve, 10));
  }

  stop(): void {
    clearInterval(this.#sweeper);
    this.#acks.unsubscribe();
    this.onDisconnected();
  }

  #expect(number: number, count: number): Outcomes {
    const outcomes = new Outcomes(count, performance.now() + this.#ackMsMax);
    this.#waiting.set(number, outcomes);
    return outcomes;
  }

  #settle(number: number, index: number, outcome: AckOutcome): void {
    if (this.#waiting.get(number)?.settle(index, outcome) === true) this.#waiting.delete(number);
  }

  #onAck(message: Msg): void {
    const { subject } = message;
    const at = this.#inbox.length + 1;
    const dash = subject.indexOf('-', at);
    const number = Number(dash < 0 ? subject.slice(at) : subject.slice(at, dash));
    this.#settle(number, dash < 0 ? 0 : Number(subject.slice(dash + 1)), readAck(message));
  }

  #sweep(): void {
    const now = performance.now();
    for (const [number, outcomes] of this.#waiting) {
      if (outcomes.deadline > now) return;
      this.#waiting.delete(number);
      outcomes.fail('the stream did not acknowledge in time');
    }
  }
}

/** What became of the messages that were published together. */
class Outcomes {
  readonly deadline: number;
  readonly all: Promise<readonly AckOutcome[]>;
  /** null: not known yet. */
  readonly #known: (AckOutcome | null)[];
  #left: number;
  #resolve: (all: readonly AckOutcome[]) => void = () => undefined;

  constructor(count: number, deadline: number) {
    this.deadline = deadline;
    this.#known = new Array<AckOutcome | null>(count).fill(null);
    this.#left = count;
    this.all = new Promise((resolve) => (this.#resolve = resolve));
  }

  /** The first outcome of each counts. @returns whether all are known */
  settle(index: number, outcome: AckOutcome): boolean {
    if (this.#known[index] !== null) return false;
    this.#known[index] = outcome;
    if (--this.#left > 0) return false;
    this.#resolve(this.#known as readonly AckOutcome[]);
    return true;
  }

  /** Of those that are not known yet nothing will be heard. */
  fail(reason: string): void {
    const error = new UnknownOutcome(reason);
    this.#known.forEach((outcome, index) => {
      if (outcome === null) this.settle(index, error);
    });
  }
}

function notTaken(cause: unknown): BrokerError {
  return unavailable('NATS did not take the message', cause);
}
