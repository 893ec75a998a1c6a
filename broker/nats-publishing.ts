import { createHash } from 'node:crypto';
import { namespaceOf } from '../protocol/topic.js';
import type { OutgoingMessage, Published, PublishOutcome } from './bus.js';
import { unavailable, type BrokerError } from './errors.js';
import { StillStoring, type AckOutcome, type PublishAck } from './nats-ack.js';
import { encodeBody, encodeHeaders } from './nats-body.js';
import type { NatsDurable } from './nats-durable.js';
import type { NatsLink } from './nats-link.js';
import { UnknownOutcome, type NatsPublisher } from './nats-publisher.js';
import type { Subjects } from './nats-subjects.js';
import type { StreamMessage } from './nats-wire.js';

export interface NatsPublishingParts {
  readonly link: NatsLink;
  readonly subjects: Subjects;
  readonly publisher: NatsPublisher;
  /** By namespace. */
  readonly durable: ReadonlyMap<string, NatsDurable>;
  /** Whether NATS is there and the bus is not being stopped. */
  readonly isConnected: () => boolean;
}

/** How often, and after which pause, a message is offered again whose id is being stored. */
const stillStoringMax = 100;
const stillStoringMs = 20;

/** Messages of one stream, and where each stands among all. */
interface Share {
  readonly messages: OutgoingMessage[];
  readonly places: number[];
}

/** How the bus publishes. */
export class NatsPublishing {
  readonly #parts: NatsPublishingParts;

  constructor(parts: NatsPublishingParts) {
    this.#parts = parts;
  }

  /** `TopicBus.publish` */
  async publish(message: OutgoingMessage): Promise<Published | undefined> {
    const { durable: all, isConnected } = this.#parts;
    if (!isConnected()) throw outOfReach();
    const durable = all.get(namespaceOf(message.topic));
    if (durable === undefined) {
      const refused = this.#sendLive(message);
      if (refused !== undefined) throw refused;
      await this.#parts.link.taken();
      return undefined;
    }
    const { newest } = durable;
    return checkedPlace(durable, newest, await this.#store(this.#forStream(message)));
  }

  /** `TopicBus.publishAll` */
  async publishAll(messages: readonly OutgoingMessage[]): Promise<readonly PublishOutcome[]> {
    const { durable: all, isConnected } = this.#parts;
    if (!isConnected()) return messages.map(outOfReach);
    const outcomes = messages.map((): PublishOutcome => undefined);
    const shares = new Map<NatsDurable, Share>();
    const live: number[] = [];
    for (const [place, message] of messages.entries()) {
      const durable = all.get(namespaceOf(message.topic));
      if (durable === undefined) {
        outcomes[place] = this.#sendLive(message);
        live.push(place);
        continue;
      }
      let share = shares.get(durable);
      if (share === undefined) shares.set(durable, (share = { messages: [], places: [] }));
      share.messages.push(message);
      share.places.push(place);
    }
    await Promise.all([
      ...[...shares].map(([durable, share]) => this.#storeShare(durable, share, outcomes)),
      this.#settleLive(live, outcomes),
    ]);
    return outcomes;
  }

  /** What waits for the acknowledgements is the messages themselves, which may have to be sent again, and nothing else for each. */
  async #storeShare(
    durable: NatsDurable,
    { messages, places }: Share,
    outcomes: PublishOutcome[],
  ): Promise<void> {
    const { newest } = durable;
    const acks = await this.#parts.publisher.publishAll(messages.map((message) => this.#forStream(message)));
    const late: Promise<void>[] = [];
    for (const [i, place] of places.entries()) {
      const [ack, message] = [acks[i], messages[i]];
      if (ack === undefined || message === undefined) throw new Error('a message has no outcome');
      if (!(ack instanceof Error) && !isTaken(ack, newest)) {
        outcomes[place] = placeIn(durable, ack);
      } else {
        late.push(
          this.#settleLate(durable, newest, message, ack).then((outcome) => void (outcomes[place] = outcome)),
        );
      }
    }
    await Promise.all(late);
  }

  /** What is not plainly stored is rare, and goes on by itself. Does not reject. */
  async #settleLate(
    durable: NatsDurable,
    newest: number,
    message: OutgoingMessage,
    first: AckOutcome,
  ): Promise<PublishOutcome> {
    try {
      const ack = first instanceof Error ? await this.#store(this.#forStream(message), first) : first;
      return await checkedPlace(durable, newest, ack);
    } catch (error) {
      return toError(error);
    }
  }

  async #settleLive(places: readonly number[], outcomes: PublishOutcome[]): Promise<void> {
    if (places.length === 0) return;
    try {
      await this.#parts.link.taken();
    } catch (error) {
      for (const place of places) outcomes[place] ??= toError(error);
    }
  }

  /** @returns why it was not handed over */
  #sendLive({ payload, topic }: OutgoingMessage): BrokerError | undefined {
    const headers = encodeHeaders(payload, undefined);
    const subject = this.#parts.subjects.live(topic);
    try {
      this.#parts.link.nc.publish(subject, encodeBody(payload), headers === undefined ? {} : { headers });
      return undefined;
    } catch (error) {
      return unavailable('NATS did not take the message', error);
    }
  }

  #forStream({ id, payload, publisher, topic }: OutgoingMessage): StreamMessage {
    return {
      subject: this.#parts.subjects.in(topic),
      payload,
      id: id === undefined ? undefined : messageIdOf(publisher, topic, id),
    };
  }

  /**
   * A publish whose outcome is unknown is tried once more when its id makes that safe.
   * @param failed how a first try has ended already
   */
  async #store(message: StreamMessage, failed?: BrokerError): Promise<PublishAck> {
    try {
      return await this.#storeOnce(message, failed);
    } catch (error) {
      if (!(error instanceof UnknownOutcome)) throw error;
      if (message.id !== undefined && this.#parts.isConnected()) return this.#storeOnce(message);
      throw unavailable(
        'it is not known whether the message was stored; retry with an id, the same each time',
        error,
      );
    }
  }

  /** Waits while the same id is being stored for somebody else: then it is a duplicate, whose place is known. */
  async #storeOnce({ id, payload, subject }: StreamMessage, failed?: BrokerError): Promise<PublishAck> {
    const { isConnected, publisher } = this.#parts;
    const publish = (): Promise<PublishAck> =>
      publisher.publish(subject, encodeBody(payload), encodeHeaders(payload, id));
    for (let attempt = 1, before = failed; ; attempt++, before = undefined) {
      try {
        if (before !== undefined) throw before;
        return await publish();
      } catch (error) {
        if (!(error instanceof StillStoring) || attempt >= stillStoringMax || !isConnected()) throw error;
        await new Promise((resolve) => setTimeout(resolve, stillStoringMs));
      }
    }
  }
}

/** An offset that was taken already: it is another stream. Its epoch has to be known before it is told. */
async function checkedPlace(durable: NatsDurable, newest: number, ack: PublishAck): Promise<Published> {
  if (!isTaken(ack, newest)) return placeIn(durable, ack);
  await durable.audit(0);
  return { epoch: durable.floor.epoch, offset: ack.seq, duplicate: ack.duplicate };
}

function placeIn(durable: NatsDurable, { duplicate, seq }: PublishAck): Published {
  durable.stored(seq);
  return { epoch: durable.floor.epoch, offset: seq, duplicate };
}

function isTaken({ duplicate, seq }: PublishAck, newest: number): boolean {
  return !duplicate && seq <= newest;
}

function outOfReach(): BrokerError {
  return unavailable('NATS is out of reach');
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

/** De-duplication is per stream: the hash keeps one publisher's ids from suppressing another's messages. */
function messageIdOf(publisher: string, topic: string, id: string): string {
  return createHash('sha256')
    .update(JSON.stringify([publisher, topic, id]))
    .digest('base64url')
    .slice(0, 27);
}
