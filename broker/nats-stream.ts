import { isPattern } from '../protocol/topic.js';
import type { NamespaceSettings } from './namespaces.js';
import { deduplicationMs } from './bus.js';
import type { NatsLimits } from './nats-limits.js';
import { isTooFewServers, JetStreamError, type NatsLink } from './nats-link.js';
import type { Subjects } from './nats-subjects.js';

/** What the leader of a stream says of it. */
export interface StreamState {
  /** In milliseconds; see `StreamMark`. */
  readonly created: number;
  readonly firstSeq: number;
  readonly lastSeq: number;
  /** When the last one was stored, in milliseconds. */
  readonly lastTime: number;
  readonly messages: number;
  readonly bytes: number;
  /** How many messages of a topic it keeps; Infinity: all. */
  readonly limit: number;
  /** When its oldest message expires, in milliseconds; Infinity: never, or there is none. */
  readonly expiry: number;
  /** Stored messages by subject, for the filter that was asked. */
  readonly subjects: ReadonlyMap<string, number>;
}

/** One stored message by which a stream is known again: another history has another one at its place. */
export interface StreamMark {
  /** 0: nothing was stored yet. */
  readonly seq: number;
  /** When it was stored, in milliseconds. */
  readonly time: number;
  /** When the stream was created, in milliseconds, by the server that said so: each copy has a time of its own, some milliseconds apart. */
  readonly created: number;
}

interface StreamInfo {
  readonly config: Record<string, unknown>;
  readonly created: string;
  /** Its name is missing on a server that stands alone. */
  readonly cluster?: { readonly name?: string };
  readonly state: {
    first_seq: number;
    first_ts: string;
    last_seq: number;
    last_ts: string;
    messages: number;
    bytes: number;
    subjects?: Record<string, number>;
  };
}

const nanosPerMs = 1e6;
const notFound = 404;
/** A leader that was just elected may have to apply what it has stored, and looks older than it is until then. */
const proofs = 4;
const proofMs = 500;
/** Further apart, the times at which two servers say that a stream was created are those of two streams. */
const createdApartMsMax = 10_000;

/** The stream of one durable namespace: made and kept as the settings say, and asked about what it holds. */
export class NatsStream {
  readonly name: string;
  readonly namespace: string;
  readonly settings: NamespaceSettings;
  /** Those that were in force before the present one. */
  readonly limits: NatsLimits;
  readonly #link: NatsLink;
  readonly #subjects: Subjects;

  constructor(
    link: NatsLink,
    subjects: Subjects,
    namespace: string,
    settings: NamespaceSettings,
    limits: NatsLimits,
  ) {
    this.#link = link;
    this.limits = limits;
    this.#subjects = subjects;
    this.namespace = namespace;
    this.settings = settings;
    this.name = subjects.stream(namespace);
  }

  /**
   * Creates the stream, or updates it to the settings; what else an operator has set stays. With fewer servers than `replicas` a new one is made
   * with a single copy, and gets the others at a later start when there are enough.
   * @throws BrokerError `unavailable`, JetStreamError
   */
  async ensure(replicas: number): Promise<StreamState> {
    const existing = await this.#find();
    if (existing === undefined) return toState(await this.#withFewer(replicas, 1, (n) => this.#create(n)));
    const has = Number(existing.config['num_replicas']);
    // A server that stands alone may accept any number, and keep one copy all the same.
    if (existing.cluster?.name === undefined) return toState(await this.#update(existing, has));
    return toState(await this.#withFewer(Math.max(has, replicas), has, (n) => this.#update(existing, n)));
  }

  /** @param filter counts the stored messages of its subjects */
  async state(filter?: string): Promise<StreamState> {
    const request = filter === undefined ? undefined : { subjects_filter: this.#subjects.in(filter) };
    return toState(await this.#link.api<StreamInfo>(`STREAM.INFO.${this.name}`, request));
  }

  markOf({ created, lastSeq, lastTime }: StreamState): StreamMark {
    return { seq: lastSeq, time: lastTime, created };
  }

  /** Whether the stream, in this state or soon after it, has come as far as that sequence. */
  async reaches(state: StreamState, seq: number): Promise<boolean> {
    for (let proof = 1, { lastSeq } = state; lastSeq < seq; proof++) {
      if (proof > proofs) return false;
      await new Promise((resolve) => setTimeout(resolve, proofMs));
      ({ lastSeq } = await this.state());
    }
    return true;
  }

  /** Whether the stream, in this state, is one in which that message was stored; so too when it has been dropped since. */
  async holds(state: StreamState, mark: StreamMark): Promise<boolean> {
    if (!(await this.reaches(state, mark.seq))) return false;
    const found = mark.seq === 0 ? undefined : await this.#get({ seq: mark.seq });
    if (found !== undefined) return Date.parse(found.time) === mark.time;
    return Math.abs(state.created - mark.created) < createdApartMsMax;
  }

  /** The sequence of the newest stored message that a filter matches, as the leader has it; 0 when there is none. */
  async newest(filters: readonly string[]): Promise<number> {
    const found = await Promise.all(
      filters.map((filter) => this.#get({ last_by_subj: this.#subjects.in(filter) })),
    );
    return Math.max(...found.map((message) => message?.seq ?? 0));
  }

  /** The sequence of the oldest stored message of a subject, as `StreamState.subjects` names it; 0 when there is none. */
  async oldest(subject: string): Promise<number> {
    return (await this.#get({ seq: 1, next_by_subj: subject }))?.seq ?? 0;
  }

  /** The sequence of the first stored message after `after`, of some filters or of the whole namespace; 0 when there is none. */
  async next(after: number, filters = [this.namespace, `${this.namespace}.>`]): Promise<number> {
    const found = await Promise.all(
      filters.map((filter) => this.#get({ seq: after + 1, next_by_subj: this.#subjects.in(filter) })),
    );
    return found.reduce((first, m) => (m === undefined || (first > 0 && first < m.seq) ? first : m.seq), 0);
  }

  /** Asks the leader, never a copy that may lag. */
  async #get(
    request: { seq: number; next_by_subj?: string } | { last_by_subj: string },
  ): Promise<{ seq: number; time: string } | undefined> {
    try {
      const { message } = await this.#link.api<{ message: { seq: number; time: string } }>(
        `STREAM.MSG.GET.${this.name}`,
        request,
      );
      return message;
    } catch (error) {
      if (error instanceof JetStreamError && error.status === notFound) return undefined;
      throw error;
    }
  }

  async #find(): Promise<StreamInfo | undefined> {
    try {
      return await this.#link.api<StreamInfo>(`STREAM.INFO.${this.name}`);
    } catch (error) {
      if (error instanceof JetStreamError && error.status === notFound) return undefined;
      throw error;
    }
  }

  async #create(replicas: number): Promise<StreamInfo> {
    await this.limits.announce(this.settings.historyMax);
    const config = { ...this.#config(replicas), name: this.name, retention: 'limits', storage: 'file' };
    return this.#link.api<StreamInfo>(`STREAM.CREATE.${this.name}`, config);
  }

  async #update(existing: StreamInfo, replicas: number): Promise<StreamInfo> {
    const wanted: Record<string, unknown> = this.#config(replicas);
    const { historyMax } = this.settings;
    const limit = limitIn(existing.config);
    if (limit === historyMax) await this.limits.confirm(limit);
    else await this.limits.announce(limit, historyMax);
    const isAsWanted = Object.keys(wanted).every((key) => isSame(wanted[key], existing.config[key]));
    if (isAsWanted) return existing;
    return this.#link.api<StreamInfo>(`STREAM.UPDATE.${this.name}`, { ...existing.config, ...wanted });
  }

  async #withFewer(
    replicas: number,
    fewer: number,
    make: (replicas: number) => Promise<StreamInfo>,
  ): Promise<StreamInfo> {
    try {
      return await make(replicas);
    } catch (error) {
      if (replicas === fewer || !isTooFewServers(error)) throw error;
      return make(fewer);
    }
  }

  #config(replicas: number) {
    const { historyMax, historySec } = this.settings;
    return {
      subjects: [this.#subjects.in(this.namespace), this.#subjects.in(`${this.namespace}.>`)],
      max_msgs_per_subject: historyMax,
      max_age: historySec * 1000 * nanosPerMs,
      discard: 'old',
      num_replicas: replicas,
      allow_direct: true,
      // No longer than the messages themselves live, which the server demands.
      duplicate_window: Math.min(deduplicationMs, historySec * 1000) * nanosPerMs,
      republish: { src: this.#subjects.in('>'), dest: this.#subjects.out('>') },
    };
  }
}

/** Whether filters name one concrete topic. */
export function exactTopicOf(filters: readonly string[]): string | undefined {
  const [only, ...others] = filters;
  return only === undefined || others.length > 0 || isPattern(only) ? undefined : only;
}

function limitIn(config: Record<string, unknown>): number {
  const max = Number(config['max_msgs_per_subject'] ?? 0);
  return max > 0 ? max : Infinity;
}

function expiryIn(config: Record<string, unknown>, { first_ts, messages }: StreamInfo['state']): number {
  const maxAgeMs = Number(config['max_age'] ?? 0) / nanosPerMs;
  return maxAgeMs > 0 && messages > 0 ? Date.parse(first_ts) + maxAgeMs : Infinity;
}

function toState({ config, created, state }: StreamInfo): StreamState {
  return {
    created: Date.parse(created),
    firstSeq: state.first_seq,
    lastSeq: state.last_seq,
    lastTime: Date.parse(state.last_ts),
    messages: state.messages,
    bytes: state.bytes,
    limit: limitIn(config),
    expiry: expiryIn(config, state),
    subjects: new Map(Object.entries(state.subjects ?? {})),
  };
}

function isSame(wanted: unknown, actual: unknown): boolean {
  if (typeof wanted !== 'object' || wanted === null) return wanted === actual;
  if (typeof actual !== 'object' || actual === null) return false;
  const record = actual as Record<string, unknown>;
  return Object.entries(wanted).every(([key, value]) => isSame(value, record[key]));
}
