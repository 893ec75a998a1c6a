import type { Msg } from 'nats';
import { matches } from '../protocol/topic.js';
import type { Position } from '../protocol/position.js';
import { historyPageMessagesMax, type BusHandler, type HistoryPage, type OpenedHead } from './bus.js';
import { BrokerError, unavailable } from './errors.js';
import { decodeBody, readHeaders } from './nats-body.js';
import { checkedPage, isComplete, readPage } from './nats-history.js';
import { findBehind, type AuditedInterest } from './nats-audit.js';
import type { Claim, NatsEpochs } from './nats-epochs.js';
import { NatsFollowers } from './nats-followers.js';
import { JetStreamError, type NatsLink } from './nats-link.js';
import type { NatsReader } from './nats-reader.js';
import { exactTopicOf, type NatsStream, type StreamMark, type StreamState } from './nats-stream.js';
import type { Subjects } from './nats-subjects.js';
import type { SubscriptionOwner, TopicSubscription } from './nats-subscription.js';

export interface NatsDurableParts {
  readonly link: NatsLink;
  readonly subjects: Subjects;
  readonly stream: NatsStream;
  readonly reader: NatsReader;
  readonly epochs: NatsEpochs;
  readonly handler: BusHandler;
  /** For a stream that has to be made again. */
  readonly replicas: number;
  readonly onFault: (error: unknown) => void;
}

interface DurableInterest extends AuditedInterest {
  readonly key: string;
  readonly subscription: TopicSubscription | undefined;
  /** The newest offset that the handler was given, or knows to be before its head. */
  delivered: number;
}

/** What was stored a moment ago is still on its way here. */
export const auditGraceMs = 500;

/** One durable namespace on this node: what it hosts of the stream, how that is fed, and the audit that nothing is missing. */
export class NatsDurable implements SubscriptionOwner {
  readonly stream: NatsStream;
  readonly #parts: NatsDurableParts;
  readonly #followers: NatsFollowers;
  readonly #interests = new Map<string, DurableInterest>();
  #epoch: string;
  /** Everything up to here was handed to the handler. */
  #floor: StreamMark;
  /** The newest sequence that anybody has told this node: of messages, heads and acknowledgements. */
  #newest: number;
  /** The stream as it was at the last audit. */
  #seen: StreamState;
  #auditedAt = Date.now();
  #auditing: Promise<void> | undefined;
  /** Requests for the state that wait for the end of this turn, to share one. */
  #statePromise: Promise<StreamState> | undefined;

  constructor(parts: NatsDurableParts, { epoch, state }: Claim) {
    this.#parts = parts;
    this.stream = parts.stream;
    this.#epoch = epoch;
    this.#floor = parts.stream.markOf(state);
    this.#seen = state;
    this.#newest = state.lastSeq;
    this.#followers = new NatsFollowers({ ...parts, onMessage: this.#onFollowed });
  }

  get floor(): Position {
    return { epoch: this.#epoch, offset: this.#floor.seq };
  }

  /** The newest sequence that this node has heard of. */
  get newest(): number {
    return this.#newest;
  }

  /** What is read from the stream for patterns. */
  get followed(): readonly string[] {
    return this.#followers.filters;
  }

  async open(key: string, filters: readonly string[]): Promise<OpenedHead> {
    if (this.#interests.has(key)) throw new Error(`the interest ${key} is open already`);
    const topic = exactTopicOf(filters);
    const subscription =
      topic === undefined
        ? undefined
        : this.#parts.link.subscribeTopic(this.#parts.subjects.out(topic), key, this);
    const interest = { key, filters, exact: topic !== undefined, subscription, delivered: 0 };
    this.#interests.set(key, interest);
    try {
      // Before the head is known, since a consumer that runs may be past it by the time it is.
      const isFed = interest.exact || this.#followers.join(key, filters);
      // The head is asked for on the same connection after the subscription: what is stored later than it is delivered.
      const head = await this.head(filters);
      this.#demandOpen(interest, head.epoch);
      interest.delivered = Math.max(interest.delivered, head.newest);
      if (!isFed) await this.#followers.add(key, filters, head.offset);
      this.#demandOpen(interest, head.epoch);
      return head;
    } catch (error) {
      if (this.#interests.get(key) === interest) this.close(key);
      throw toUnavailable(error);
    }
  }

  /** A message was stored at this place: whoever hears of it says so, and a stream that has not come as far is another one. */
  stored(offset: number): void {
    if (offset > this.#newest) this.#newest = offset;
  }

  close(key: string): void {
    const interest = this.#interests.get(key);
    if (interest === undefined) return;
    this.#interests.delete(key);
    if (interest.subscription === undefined) this.#followers.remove(key);
    else interest.subscription.unsubscribe();
  }

  head(filters: readonly string[]): Promise<OpenedHead> {
    return this.#inOneEpoch(async (epoch) => {
      const state = await this.#state();
      // Asked after the state, so nothing of the interest lies between the two.
      const newest = await this.stream.newest(filters);
      return { epoch, offset: Math.max(state.lastSeq, newest), newest };
    });
  }

  history(filters: readonly string[], after: number, limit: number, from: number): Promise<HistoryPage> {
    const begin = Math.min(from, after);
    return this.#inOneEpoch(async (epoch) => {
      const topic = exactTopicOf(filters);
      const hosted = topic === undefined ? undefined : this.#interests.get(topic);
      const newest = hosted?.exact === true ? hosted.delivered : undefined;
      const countMax = Math.min(limit, historyPageMessagesMax);
      const page = await readPage(this.#parts.reader, this.stream, this.#seen, filters, begin, countMax);
      const { completeAfter } = page;
      // What this node was given of a topic says as much as the leader would, and a message at or before the position that nothing after it was
      // dropped: the oldest go first.
      if (newest !== undefined && completeAfter <= after && (page.more || newest <= page.upTo)) {
        return { ...page, epoch, complete: true, lostUpTo: -1 };
      }
      const known = (): Promise<StreamState> => this.#known(topic);
      return { ...(await checkedPage(this.stream, filters, page, begin, after, known)), epoch };
    });
  }

  latest(filters: readonly string[], count: number): Promise<HistoryPage> {
    return this.#inOneEpoch(async (epoch) => {
      const wanted = Math.min(count, historyPageMessagesMax);
      const state = await this.#state();
      const newest = await this.stream.newest(filters);
      const { lastRead, messages } = await this.#parts.reader.last(
        this.stream,
        state,
        filters,
        newest,
        wanted,
      );
      const upTo = lastRead < newest ? lastRead : Math.max(newest, state.lastSeq);
      const completeAfter = (messages[0]?.offset ?? upTo + 1) - 1;
      return { epoch, messages, more: false, complete: true, completeAfter, lostUpTo: -1, upTo };
    });
  }

  recoverable(filters: readonly string[], offset: number): Promise<boolean> {
    return this.#inOneEpoch(async () => {
      await this.#state();
      return isComplete(this.stream, filters, offset);
    });
  }

  /** Compares what the stream holds with what was delivered here, and tells the handler what is behind. */
  audit(graceMs = auditGraceMs): Promise<void> {
    this.#auditing ??= this.#audit(graceMs).finally(() => (this.#auditing = undefined));
    return this.#auditing;
  }

  /** The connection is back: what was stored meanwhile was not delivered to it. */
  async catchUp(): Promise<void> {
    this.#followers.resume();
    // One that runs began before, and has an owner who hears of its failure.
    await this.#auditing?.catch(() => undefined);
    await this.audit(0);
  }

  stop(): void {
    for (const key of [...this.#interests.keys()]) this.close(key);
    this.#followers.stop();
  }

  async #audit(graceMs: number): Promise<void> {
    const at = Date.now();
    const { epoch, state } = await this.#claim();
    this.#seen = state;
    if (epoch !== this.#epoch) return this.#adopt(epoch, state);
    const isMoved = state.lastSeq > this.#floor.seq && this.#interests.size > 0;
    if (isMoved && (await this.#findBehind(state, graceMs))) return;
    const mark = this.stream.markOf(state);
    // First noted, then told: a client that knows a floor must not be the only one who remembers that the stream had come so far.
    await this.#parts.epochs.note(this.stream.namespace, this.#epoch, mark);
    this.#floor = mark;
    this.#auditedAt = at;
    await this.stream.limits.settle(state.limit, () => this.#known());
  }

  async #claim(): Promise<Claim> {
    const { epochs, replicas } = this.#parts;
    const seenHere = { epoch: this.#epoch, seen: this.#floor, newest: this.#newest };
    try {
      return await epochs.claim(this.stream, seenHere);
    } catch (error) {
      if (!(error instanceof JetStreamError) || error.number !== streamNotFound) throw error;
      // Somebody has deleted it. Without it nothing can be published, so it is made again, as at the start.
      await this.stream.ensure(replicas);
      return epochs.claim(this.stream, seenHere, true);
    }
  }

  async #findBehind(state: StreamState, graceMs: number): Promise<boolean> {
    const { reader } = this.#parts;
    const interests = [...this.#interests.values()];
    const isOpen = (interest: DurableInterest): boolean => this.#interests.get(interest.key) === interest;
    const found = await findBehind(this.stream, reader, {
      interests,
      isOpen,
      after: this.#floor.seq,
      state,
      graceMs,
    });
    for (const [interest, newest] of found) {
      interest.delivered = newest;
      this.#parts.handler.onBehind(interest.key, newest);
    }
    return found.length > 0;
  }

  /** The stream is another one than it was, or an older copy of it. */
  async #adopt(epoch: string, state: StreamState): Promise<void> {
    this.#epoch = epoch;
    this.#floor = this.stream.markOf(state);
    this.#newest = state.lastSeq;
    this.#auditedAt = Date.now();
    for (const interest of this.#interests.values()) interest.delivered = state.lastSeq;
    // In the same turn: what is delivered from here on counts from the new head.
    this.#parts.handler.onEpoch(this.stream.namespace, { epoch, offset: state.lastSeq });
    await this.#followers.restart(state.lastSeq);
    await this.#parts.epochs.note(this.stream.namespace, epoch, this.#floor);
  }

  onFault(error: unknown): void {
    this.#parts.onFault(error);
  }

  /** A message that the stream has stored and sends on to whoever hosts its topic. */
  onMessage(key: string, message: Msg): void {
    const interest = this.#interests.get(key);
    if (interest === undefined) return;
    const topic = interest.filters[0] ?? key;
    const headers = readHeaders(message);
    if (!headers.ok) {
      // Its place cannot be read either: the audit, or the next message, will see that it is missing, and find nothing to read there.
      this.#parts.handler.onUnparsable(key, { topic, offset: 0, prev: 0 }, headers.message);
      return;
    }
    // The stream writes its own behind those that the publisher sent, which may bear the same names.
    const offset = Number(headers.value?.values('Nats-Sequence').at(-1));
    const before = Number(headers.value?.values('Nats-Last-Sequence').at(-1));
    if (!Number.isSafeInteger(offset) || offset <= 0) return;
    // Without a predecessor there may have been one that has expired; what this node was sure of a while ago cannot have.
    const sure = Date.now() - this.#auditedAt < this.stream.settings.historySec * 1000;
    const prev = before > 0 || sure ? before : offset - 1;
    this.#hand(interest, topic, offset, prev, message);
  }

  readonly #onFollowed = (keys: Iterable<string>, topic: string, seq: number, message: Msg): void => {
    for (const key of keys) {
      const interest = this.#interests.get(key);
      if (interest === undefined || !interest.filters.some((filter) => matches(filter, topic))) continue;
      // The consumer is ordered: what it did not bring in between is not there.
      this.#hand(interest, topic, seq, Math.min(interest.delivered, seq - 1), message);
    }
  };

  #hand(interest: DurableInterest, topic: string, offset: number, prev: number, message: Msg): void {
    const body = decodeBody(message);
    interest.delivered = Math.max(interest.delivered, offset);
    this.stored(offset);
    if (body.ok) this.#parts.handler.onStored(interest.key, { topic, payload: body.value, offset, prev });
    else this.#parts.handler.onUnparsable(interest.key, { topic, offset, prev }, body.message);
  }

  /** One request for all that ask in the same turn: opening a thousand topics is not a thousand of them. */
  #state(): Promise<StreamState> {
    this.#statePromise ??= Promise.resolve().then(() => {
      this.#statePromise = undefined;
      return this.#known();
    });
    return this.#statePromise;
  }

  /** Asks the stream; what is answered belongs to the epoch that is handed in, or is not answered. */
  async #inOneEpoch<T>(ask: (epoch: string) => Promise<T>): Promise<T> {
    const epoch = this.#epoch;
    try {
      const answer = await ask(epoch);
      this.#demandEpoch(epoch);
      return answer;
    } catch (error) {
      throw toUnavailable(error);
    }
  }

  #demandEpoch(epoch: string): void {
    if (epoch !== this.#epoch) throw unavailable('the stream was replaced meanwhile');
  }

  #demandOpen(interest: DurableInterest, epoch: string): void {
    this.#demandEpoch(epoch);
    if (this.#interests.get(interest.key) !== interest) throw unavailable('it was closed meanwhile');
  }

  /** A stream that is not the one this node knows is looked at at once; what is read of it meanwhile has no epoch. */
  async #known(topic?: string): Promise<StreamState> {
    const before = this.#newest;
    const state = await this.stream.state(topic);
    if (state.lastSeq >= before) return state;
    this.audit(0).catch(this.#parts.onFault);
    throw unavailable('the stream seems to have been replaced');
  }
}

/** The server's number for "stream not found". */
const streamNotFound = 10059;

/** Whatever goes wrong with NATS means for callers that it is out of reach for now. */
function toUnavailable(error: unknown): BrokerError {
  return error instanceof BrokerError ? error : unavailable('NATS answered with an error', error);
}
