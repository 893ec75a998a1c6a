import type { JetStreamClient, JsMsg, Msg, NatsConnection, Subscription } from 'nats';
import { matches } from '../protocol/topic.js';
import type { Position } from '../protocol/position.js';
import { historyPageMessagesMax, type BusHandler, type HistoryPage, type OpenedHead } from './bus.js';
import { decodeBody } from './nats-body.js';
import type { NatsEpochs } from './nats-epochs.js';
import { NatsFollowers } from './nats-followers.js';
import type { NatsReader } from './nats-reader.js';
import { exactTopicOf, type NatsStream, type StreamState } from './nats-stream.js';
import type { Subjects } from './nats-subjects.js';

export interface NatsDurableParts {
  readonly nc: NatsConnection;
  readonly js: JetStreamClient;
  readonly subjects: Subjects;
  readonly stream: NatsStream;
  readonly reader: NatsReader;
  readonly epochs: NatsEpochs;
  readonly handler: BusHandler;
  readonly onFault: (error: unknown) => void;
}

interface DurableInterest {
  readonly key: string;
  readonly filters: readonly string[];
  readonly exact: boolean;
  readonly subscription: Subscription | undefined;
  /** The newest offset that the handler was given, or knows to be before its head. */
  delivered: number;
}

/** A scan of the stream costs one message for each that was stored, a question for one interest about thirty. */
const scanPerQuestion = 30;
/** What was stored a moment ago is still on its way here. */
const auditGraceMs = 500;

/** One durable namespace on this node: what it hosts of the stream, how that is fed, and the audit that nothing is missing. */
export class NatsDurable {
  readonly stream: NatsStream;
  readonly #parts: NatsDurableParts;
  readonly #followers: NatsFollowers;
  readonly #interests = new Map<string, DurableInterest>();
  #epoch: string;
  #created: string;
  #floor: number;
  #auditedAt = Date.now();
  #auditing: Promise<void> | undefined;
  /** Requests for the state that wait for the end of this turn, to share one. */
  #statePromise: Promise<StreamState> | undefined;

  constructor(parts: NatsDurableParts, epoch: string, state: StreamState) {
    this.#parts = parts;
    this.stream = parts.stream;
    this.#epoch = epoch;
    this.#created = state.created;
    this.#floor = state.lastSeq;
    this.#followers = new NatsFollowers(
      parts.js,
      parts.subjects,
      parts.stream,
      this.#onFollowed,
      parts.onFault,
    );
  }

  get floor(): Position {
    return { epoch: this.#epoch, offset: this.#floor };
  }

  get epoch(): string {
    return this.#epoch;
  }

  async open(key: string, filters: readonly string[]): Promise<OpenedHead> {
    if (this.#interests.has(key)) throw new Error(`the interest ${key} is open already`);
    const topic = exactTopicOf(filters);
    const subscription = topic === undefined ? undefined : this.#subscribe(key, topic);
    const interest = { key, filters, exact: topic !== undefined, subscription, delivered: 0 };
    this.#interests.set(key, interest);
    try {
      // The head is asked for on the same connection after the subscription: what is stored later than it is delivered.
      const head = await this.head(filters);
      interest.delivered = Math.max(interest.delivered, head.newest);
      if (!interest.exact) await this.#followers.add(key, filters, head.offset);
      return head;
    } catch (error) {
      this.close(key);
      throw error;
    }
  }

  close(key: string): void {
    const interest = this.#interests.get(key);
    if (interest === undefined) return;
    this.#interests.delete(key);
    if (interest.subscription === undefined) this.#followers.remove(key);
    else interest.subscription.unsubscribe();
  }

  async head(filters: readonly string[]): Promise<OpenedHead> {
    const state = await this.#state();
    // Asked after the state, so nothing of the interest lies between the two.
    const newest = await this.stream.newest(filters);
    return { epoch: this.#epoch, offset: Math.max(state.lastSeq, newest), newest };
  }

  async history(filters: readonly string[], after: number, limit: number): Promise<HistoryPage> {
    const state = await this.stream.state(exactTopicOf(filters));
    const countMax = Math.min(limit, historyPageMessagesMax);
    const read = await this.#parts.reader.read(this.stream, state, filters, after, countMax);
    const complete = await this.#isComplete(filters, state, after, read.messages[0]?.offset);
    let upTo = Math.max(read.lastRead, Math.min(state.firstSeq - 1, state.lastSeq));
    // A copy that lags sees less than there is, so that it saw nothing more proves nothing: the leader has to say so.
    if (!read.more && (await this.stream.newest(filters)) <= upTo) upTo = Math.max(upTo, state.lastSeq);
    return { epoch: this.#epoch, messages: read.messages, more: read.more, complete, upTo };
  }

  /** Reads backwards in growing windows, since the stream can only be read forwards. */
  async latest(filters: readonly string[], count: number): Promise<HistoryPage> {
    const wanted = Math.min(count, historyPageMessagesMax);
    const state = await this.stream.state();
    const newest = await this.stream.newest(filters);
    let window = wanted * 4;
    for (;;) {
      const after = Math.max(state.firstSeq - 1, newest - window, 0);
      const messages = await this.#readAll(state, filters, after, newest);
      if (messages.length >= wanted || after <= state.firstSeq - 1) {
        const upTo = Math.max(newest, state.lastSeq);
        return { epoch: this.#epoch, messages: messages.slice(-wanted), more: false, complete: true, upTo };
      }
      window *= 8;
    }
  }

  async recoverable(filters: readonly string[], offset: number): Promise<boolean> {
    return this.stream.isComplete(filters, offset);
  }

  /** Compares what the stream holds with what was delivered here, and tells the handler what is behind. */
  audit(graceMs = auditGraceMs): Promise<void> {
    this.#auditing ??= this.#audit(graceMs).finally(() => (this.#auditing = undefined));
    return this.#auditing;
  }

  stop(): void {
    for (const key of [...this.#interests.keys()]) this.close(key);
    this.#followers.stop();
  }

  async #audit(graceMs: number): Promise<void> {
    const state = await this.stream.state();
    const seenHere = this.#floor;
    if (state.created !== this.#created || state.lastSeq < seenHere) return this.#restart(state, seenHere);
    const epoch = await this.#parts.epochs.claim(this.stream.namespace, state, seenHere);
    if (epoch !== this.#epoch) return this.#adopt(epoch, state);
    const isBehind =
      state.lastSeq > this.#floor && this.#interests.size > 0 && (await this.#findBehind(state, graceMs));
    if (isBehind) return;
    this.#floor = state.lastSeq;
    this.#auditedAt = Date.now();
    await this.#parts.epochs.note(this.stream.namespace, this.#epoch, state.lastSeq);
  }

  async #findBehind(state: StreamState, graceMs: number): Promise<boolean> {
    if (graceMs > 0) await new Promise((resolve) => setTimeout(resolve, graceMs).unref());
    const moved = state.lastSeq - this.#floor;
    const newestOf =
      moved > this.#interests.size * scanPerQuestion
        ? async (interest: DurableInterest) => this.stream.newest(interest.filters)
        : newestIn(await this.#parts.reader.scan(this.stream, this.#floor, state.lastSeq));
    let isBehind = false;
    for (const interest of [...this.#interests.values()]) {
      const newest = await newestOf(interest);
      if (newest <= interest.delivered || !this.#interests.has(interest.key)) continue;
      isBehind = true;
      this.#parts.handler.onBehind(interest.key, newest);
      interest.delivered = newest;
    }
    return isBehind;
  }

  /** The stream is another one than it was, or an older copy of it. */
  async #restart(state: StreamState, seenHere: number): Promise<void> {
    const same = state.created === this.#created;
    const epoch = await this.#parts.epochs.claim(this.stream.namespace, state, same ? seenHere : 0);
    await this.#adopt(epoch, state);
  }

  async #adopt(epoch: string, state: StreamState): Promise<void> {
    this.#epoch = epoch;
    this.#created = state.created;
    this.#floor = state.lastSeq;
    for (const interest of this.#interests.values()) interest.delivered = state.lastSeq;
    await this.#followers.restart(state.lastSeq);
    this.#parts.handler.onEpoch(this.stream.namespace, { epoch, offset: state.lastSeq });
  }

  #subscribe(key: string, topic: string): Subscription {
    return this.#parts.nc.subscribe(this.#parts.subjects.out(topic), {
      callback: (error, message) => {
        if (error !== null) this.#parts.onFault(error);
        else this.#onRepublished(key, topic, message);
      },
    });
  }

  #onRepublished(key: string, topic: string, message: Msg): void {
    const interest = this.#interests.get(key);
    const offset = Number(message.headers?.get('Nats-Sequence'));
    const before = Number(message.headers?.get('Nats-Last-Sequence'));
    if (interest === undefined || !Number.isSafeInteger(offset) || offset <= 0) return;
    // Without a predecessor there may have been one that has expired; what this node was sure of a while ago cannot have.
    const sure = Date.now() - this.#auditedAt < this.stream.settings.historySec * 1000;
    const prev = before > 0 || sure ? before : offset - 1;
    this.#hand(interest, topic, offset, prev, message);
  }

  readonly #onFollowed = (keys: Iterable<string>, topic: string, seq: number, message: JsMsg): void => {
    for (const key of keys) {
      const interest = this.#interests.get(key);
      if (interest === undefined || !interest.filters.some((filter) => matches(filter, topic))) continue;
      // The consumer is ordered: what it did not bring in between is not there.
      this.#hand(interest, topic, seq, Math.min(interest.delivered, seq - 1), message);
    }
  };

  #hand(interest: DurableInterest, topic: string, offset: number, prev: number, message: Msg | JsMsg): void {
    const body = decodeBody(message.data, message.headers);
    interest.delivered = Math.max(interest.delivered, offset);
    if (body.ok) this.#parts.handler.onStored(interest.key, { topic, payload: body.value, offset, prev });
    else this.#parts.handler.onUnparsable(interest.key, { topic, offset, prev }, body.message);
  }

  /** One request for all that ask in the same turn: opening a thousand topics is not a thousand of them. */
  #state(): Promise<StreamState> {
    this.#statePromise ??= Promise.resolve().then(() => {
      this.#statePromise = undefined;
      return this.stream.state();
    });
    return this.#statePromise;
  }

  async #isComplete(
    filters: readonly string[],
    state: StreamState,
    after: number,
    first: number | undefined,
  ): Promise<boolean> {
    if (after < state.firstSeq - 1 || after > state.lastSeq) return false;
    const [only] = state.subjects.values();
    if (exactTopicOf(filters) === undefined) return this.stream.isComplete(filters, after);
    if (only === undefined || only < this.stream.settings.historyMax) return true;
    // The topic is full: if more than its newest come after the asked place, everything older may be gone.
    return first === undefined || this.stream.isComplete(filters, after);
  }

  async #readAll(state: StreamState, filters: readonly string[], after: number, upTo: number) {
    const messages = [];
    for (let from = after; from < upTo;) {
      const page = await this.#parts.reader.read(this.stream, state, filters, from, historyPageMessagesMax);
      messages.push(...page.messages);
      if (!page.more || page.lastRead <= from) break;
      from = page.lastRead;
    }
    return messages;
  }
}

function newestIn(scanned: ReadonlyMap<string, number>) {
  return async (interest: DurableInterest): Promise<number> => {
    const [only] = interest.filters;
    if (interest.exact && only !== undefined) return scanned.get(only) ?? 0;
    let newest = 0;
    for (const [topic, seq] of scanned) {
      if (interest.filters.some((filter) => matches(filter, topic))) newest = Math.max(newest, seq);
    }
    return newest;
  };
}
