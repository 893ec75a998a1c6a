import { createInbox, type Msg, type MsgHdrs, type NatsConnection, type Subscription } from 'nats';
import { BrokerError, unavailable } from './errors.js';
import type { NatsLink } from './nats-link.js';

/** Where a stored message went. */
export interface PublishAck {
  readonly seq: number;
  readonly duplicate: boolean;
}

/** The outcome of a publish is not known: it may have been stored. */
export class UnknownOutcome extends BrokerError {
  constructor(message: string) {
    super('unavailable', message);
    this.name = 'UnknownOutcome';
  }
}

/** The same id is being stored at this moment; whether it will be is known soon. */
export class StillStoring extends BrokerError {
  constructor() {
    super('unavailable', 'a message with the same id is being stored');
    this.name = 'StillStoring';
  }
}

interface Waiting {
  readonly resolve: (ack: PublishAck) => void;
  readonly reject: (error: BrokerError) => void;
  readonly deadline: number;
}

const sweepMs = 250;
/** The server's number for "duplicate message id is in process". */
const duplicateInProcess = 10158;

/**
 * Publishes to streams and waits for their acknowledgements on one subscription of its own. A publish costs one entry in a map: no request
 * object, no timer (4.4–4.8 µs of CPU a message against 58 µs for the client's own `js.publish`).
 */
export class NatsPublisher {
  readonly #nc: NatsConnection;
  readonly #ackMsMax: number;
  readonly #inbox = createInbox();
  /** In the order of their deadlines, as all wait equally long. */
  readonly #waiting = new Map<number, Waiting>();
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
  publish(subject: string, body: string | Uint8Array, headers: MsgHdrs | undefined): Promise<PublishAck> {
    const number = ++this.#counter;
    return new Promise((resolve, reject) => {
      this.#waiting.set(number, { resolve, reject, deadline: performance.now() + this.#ackMsMax });
      try {
        const reply = `${this.#inbox}.${number}`;
        this.#nc.publish(subject, body, headers === undefined ? { reply } : { reply, headers });
      } catch (error) {
        this.#waiting.delete(number);
        reject(unavailable('NATS did not take the message', error));
      }
    });
  }

  /** The connection was lost with everything that was under way. */
  onDisconnected(): void {
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of waiting) reject(new UnknownOutcome('NATS was lost before it acknowledged'));
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

  #onAck(message: Msg): void {
    const number = Number(message.subject.slice(this.#inbox.length + 1));
    const waiting = this.#waiting.get(number);
    if (waiting === undefined) return;
    this.#waiting.delete(number);
    // Nobody listens on the subject: no stream, or none that has a leader.
    if (message.data.length === 0 && message.headers?.code === 503) {
      return waiting.reject(unavailable('the stream is out of reach'));
    }
    const ack = parseAck(message.string());
    if (ack instanceof BrokerError) waiting.reject(ack);
    else waiting.resolve(ack);
  }

  #sweep(): void {
    const now = performance.now();
    for (const [number, { deadline, reject }] of this.#waiting) {
      if (deadline > now) return;
      this.#waiting.delete(number);
      reject(new UnknownOutcome('the stream did not acknowledge in time'));
    }
  }
}

function parseAck(text: string): PublishAck | BrokerError {
  let ack: { seq?: number; duplicate?: boolean; error?: { err_code?: number; description?: string } };
  try {
    ack = JSON.parse(text) as typeof ack;
  } catch (error) {
    return unavailable('the stream answered with something else than JSON', error);
  }
  if (ack.error?.err_code === duplicateInProcess) return new StillStoring();
  if (ack.error !== undefined) {
    return unavailable(`the stream refused: ${ack.error.description ?? 'unknown'}`);
  }
  if (ack.seq === undefined) return unavailable('the stream answered without a sequence');
  return { seq: ack.seq, duplicate: ack.duplicate === true };
}
