import type { OutgoingMessage, Published, PublishOutcome, TopicBus } from '../broker/bus.js';
import { BrokerError } from '../broker/errors.js';
import type { Namespaces } from '../broker/namespaces.js';
import { grammarLimits } from '../protocol/limits.js';
import type { Payload } from '../protocol/payload.js';
import { failure, success, type Failure, type Result } from '../protocol/result.js';
import { namespaceOf, parseTopic } from '../protocol/topic.js';
import type { Principal } from './auth.js';
import type { Logger } from './log.js';
import type { Counters } from './metrics.js';

export interface PublishRequest {
  readonly topic: string;
  readonly payload: Payload;
  /** De-duplicates per publisher and topic for two minutes. */
  readonly id?: string | undefined;
}

export interface PublisherOptions {
  readonly bus: TopicBus;
  readonly namespaces: Namespaces;
  readonly payloadBytesMax: number;
  readonly counters: Pick<Counters, 'published'>;
  readonly log: Logger;
}

/** Publishing on behalf of a principal, the same for sockets and HTTP: grammar, grant, size, then the bus. */
export class Publisher {
  readonly #options: PublisherOptions;

  constructor(options: PublisherOptions) {
    this.#options = options;
  }

  /** Never rejects. Durable: the place, once it is stored. Live: undefined, once it was handed over. */
  async publish(principal: Principal, request: PublishRequest): Promise<Result<Published | undefined>> {
    const refused = this.#refusal(principal, request);
    if (refused !== undefined) return refused;
    const { bus, log } = this.#options;
    try {
      return this.#resultOf(await bus.publish(outgoing(principal, request)));
    } catch (error) {
      return failureOf(error, log);
    }
  }

  /** The same for several, handed over together; the results are in their order. */
  async publishAll(
    principal: Principal,
    requests: readonly PublishRequest[],
  ): Promise<readonly Result<Published | undefined>[]> {
    const refusals = requests.map((request) => this.#refusal(principal, request));
    const accepted = requests.filter((_, i) => refusals[i] === undefined);
    const outcomes = await this.#handOver(accepted.map((request) => outgoing(principal, request)));
    let next = 0;
    return refusals.map((refused) => refused ?? this.#resultOf(outcomes[next++]));
  }

  isDurable(topic: string): boolean {
    return this.#options.namespaces.of(namespaceOf(topic)).delivery === 'durable';
  }

  async #handOver(messages: readonly OutgoingMessage[]): Promise<readonly PublishOutcome[]> {
    try {
      return await this.#options.bus.publishAll(messages);
    } catch (error) {
      const fault = error instanceof Error ? error : new Error(String(error));
      return messages.map(() => fault);
    }
  }

  #resultOf(outcome: PublishOutcome): Result<Published | undefined> {
    const { counters, log } = this.#options;
    if (outcome instanceof Error) return failureOf(outcome, log);
    if (outcome === undefined) counters.published.live++;
    else counters.published.durable++;
    return success(outcome);
  }

  #refusal(principal: Principal, { topic, payload, id }: PublishRequest): Failure | undefined {
    const parsed = parseTopic(topic);
    if (!parsed.ok) return parsed;
    if (!principal.grants.canPublish(topic)) return failure('forbidden', 'no grant to publish to this topic');
    const { payloadBytesMax } = this.#options;
    if (isLarger(payload, payloadBytesMax)) {
      return failure('payload_too_large', `data has at most ${payloadBytesMax} bytes`);
    }
    if (id !== undefined && (id.length === 0 || id.length > grammarLimits.messageIdCharsMax)) {
      return failure('invalid_frame', `an id has 1 to ${grammarLimits.messageIdCharsMax} characters`);
    }
    return undefined;
  }
}

function outgoing(principal: Principal, { id, payload, topic }: PublishRequest): OutgoingMessage {
  const publisher = principal.userId;
  return id === undefined ? { topic, payload, publisher } : { topic, payload, publisher, id };
}

/** An engine's failure as an answer; what nobody expects is logged and told without detail. */
export function failureOf(error: unknown, log: Logger): Failure {
  if (error instanceof BrokerError) return failure(error.code, error.message);
  log.error({ err: error }, 'unexpected fault');
  return failure('internal', 'internal error');
}

export function isLarger(payload: Payload, bytesMax: number): boolean {
  if (payload.format === 'msgpack') return payload.bytes.length > bytesMax;
  // A UTF-16 unit is one to three bytes of UTF-8: most texts are decided without counting.
  if (payload.text.length > bytesMax) return true;
  return payload.text.length * 3 > bytesMax && Buffer.byteLength(payload.text) > bytesMax;
}
