import { isPattern } from '../protocol/topic.js';
import type { NamespaceSettings } from './namespaces.js';
import { deduplicationMs } from './bus.js';
import { JetStreamError, type NatsLink } from './nats-link.js';
import type { Subjects } from './nats-subjects.js';

/** What the leader of a stream says of it. */
export interface StreamState {
  readonly created: string;
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly messages: number;
  readonly bytes: number;
  /** Stored messages by subject, for the filter that was asked. */
  readonly subjects: ReadonlyMap<string, number>;
}

interface StreamInfo {
  readonly config: Record<string, unknown>;
  readonly created: string;
  readonly state: {
    first_seq: number;
    last_seq: number;
    messages: number;
    bytes: number;
    subjects?: Record<string, number>;
  };
}

const nanosPerMs = 1e6;
const notFound = 404;
/** "insufficient resources", "replicas > 1 not supported in non-clustered mode", "no suitable peers for placement". */
const tooFewServers = new Set([10023, 10074, 10005]);

/** The stream of one durable namespace: made and kept as the settings say, and asked about what it holds. */
export class NatsStream {
  readonly name: string;
  readonly namespace: string;
  readonly settings: NamespaceSettings;
  readonly #link: NatsLink;
  readonly #subjects: Subjects;

  constructor(link: NatsLink, subjects: Subjects, namespace: string, settings: NamespaceSettings) {
    this.#link = link;
    this.#subjects = subjects;
    this.namespace = namespace;
    this.settings = settings;
    this.name = subjects.stream(namespace);
  }

  /**
   * Creates the stream, or updates it to the settings. With fewer servers than `replicas` a new one is made with a single copy.
   * @throws BrokerError `unavailable`, JetStreamError
   */
  async ensure(replicas: number): Promise<StreamState> {
    const existing = await this.#find();
    if (existing === undefined) return this.#create(replicas);
    const wanted: Record<string, unknown> = this.#config(existing.config['num_replicas'] as number);
    const changed = Object.keys(wanted).filter((key) => !isSame(wanted[key], existing.config[key]));
    if (changed.length === 0) return toState(existing);
    const config = { ...existing.config, ...wanted };
    return toState(await this.#link.api<StreamInfo>(`STREAM.UPDATE.${this.name}`, config));
  }

  /** @param filter counts the stored messages of its subjects */
  async state(filter?: string): Promise<StreamState> {
    const request = filter === undefined ? undefined : { subjects_filter: this.#subjects.in(filter) };
    return toState(await this.#link.api<StreamInfo>(`STREAM.INFO.${this.name}`, request));
  }

  /** The sequence of the newest stored message that a filter matches, as the leader has it; 0 when there is none. */
  async newest(filters: readonly string[]): Promise<number> {
    const found = await Promise.all(
      filters.map((filter) => this.#get({ last_by_subj: this.#subjects.in(filter) })),
    );
    return Math.max(...found);
  }

  /**
   * Whether nothing after `offset` was dropped for the filters: the stream begins no later, or the topics concerned have dropped nothing by count.
   */
  async isComplete(filters: readonly string[], offset: number): Promise<boolean> {
    const states = await Promise.all(filters.map((filter) => this.state(filter)));
    for (const state of states) {
      if (offset < state.firstSeq - 1 || offset > state.lastSeq) return false;
      for (const [subject, count] of state.subjects) {
        if (count < this.settings.historyMax) continue;
        const oldest = await this.#get({ seq: 1, next_by_subj: subject });
        if (oldest > offset) return false;
      }
    }
    return true;
  }

  async #get(request: { last_by_subj: string } | { seq: number; next_by_subj: string }): Promise<number> {
    try {
      const { message } = await this.#link.api<{ message: { seq: number } }>(
        `STREAM.MSG.GET.${this.name}`,
        request,
      );
      return message.seq;
    } catch (error) {
      if (error instanceof JetStreamError && error.status === notFound) return 0;
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

  async #create(replicas: number): Promise<StreamState> {
    const config = { ...this.#config(replicas), name: this.name, retention: 'limits', storage: 'file' };
    try {
      return toState(await this.#link.api<StreamInfo>(`STREAM.CREATE.${this.name}`, config));
    } catch (error) {
      if (!(error instanceof JetStreamError) || replicas === 1 || !tooFewServers.has(error.number))
        throw error;
      return this.#create(1);
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

function toState({ created, state }: StreamInfo): StreamState {
  return {
    created,
    firstSeq: state.first_seq,
    lastSeq: state.last_seq,
    messages: state.messages,
    bytes: state.bytes,
    subjects: new Map(Object.entries(state.subjects ?? {})),
  };
}

function isSame(wanted: unknown, actual: unknown): boolean {
  if (typeof wanted !== 'object' || wanted === null) return wanted === actual;
  if (typeof actual !== 'object' || actual === null) return false;
  const record = actual as Record<string, unknown>;
  return Object.entries(wanted).every(([key, value]) => isSame(value, record[key]));
}
