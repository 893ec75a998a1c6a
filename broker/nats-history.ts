import type { HistoryPage, StoredMessage } from './bus.js';
import type { NatsReader } from './nats-reader.js';
import { exactTopicOf, type NatsStream, type StreamState } from './nats-stream.js';

/** A page as it was read, before anybody was asked what was dropped. */
export interface ReadPage {
  readonly messages: readonly StoredMessage[];
  readonly more: boolean;
  readonly upTo: number;
  /** From here on nothing is missing, which the page itself proves. Infinity: it proves nothing. */
  readonly completeAfter: number;
}

type Completeness = Pick<HistoryPage, 'complete' | 'completeAfter' | 'lostUpTo'>;

/**
 * Messages after `begin`, with one request. Of one topic the message at the position itself is read as well: since the oldest are dropped first, it
 * proves that what comes after is all there.
 * @param state of some time ago, from which the size of messages is guessed
 */
export async function readPage(
  reader: NatsReader,
  stream: NatsStream,
  state: StreamState,
  filters: readonly string[],
  begin: number,
  countMax: number,
): Promise<ReadPage> {
  const isTopic = exactTopicOf(filters) !== undefined;
  const start = isTopic ? Math.max(0, begin - 1) : begin;
  const read = await reader.read(stream, state, filters, start, countMax + (begin - start));
  const [first] = read.messages;
  const found = first?.offset === begin ? read.messages.slice(1) : read.messages;
  const messages = found.slice(0, countMax);
  const isCut = found.length > countMax;
  return {
    messages,
    more: read.more || isCut,
    upTo: Math.max(begin, isCut ? (messages.at(-1)?.offset ?? 0) : read.lastRead),
    completeAfter: isTopic && first !== undefined ? first.offset : Infinity,
  };
}

/**
 * A page that does not prove itself, with what the leader says of it.
 * @param begin where the page begins, at or before `after`
 * @param known asks for the leader's state, with the count of the topic when it is one
 * @throws BrokerError `unavailable`, JetStreamError
 */
export async function checkedPage(
  stream: NatsStream,
  filters: readonly string[],
  page: ReadPage,
  begin: number,
  after: number,
  known: () => Promise<StreamState>,
): Promise<ReadPage & Completeness> {
  // Asked after the reading, for which it may have had to wait: what was dropped before it shows.
  const state = await known();
  let { upTo } = page;
  // A copy that lags sees less than there is, so that it saw nothing more proves nothing: the leader has to say so.
  if (!page.more && (await stream.newest(filters)) <= upTo) upTo = Math.max(upTo, state.lastSeq);
  const completeness = isExpiring(state)
    ? await completenessWhileExpiring(stream, filters, page, begin, after, known)
    : await completenessOf(stream, filters, state, after);
  return { ...page, upTo, ...completeness };
}

/** What a stream can tell of the positions in a page that begins at or before `after`. */
async function completenessOf(
  stream: NatsStream,
  filters: readonly string[],
  state: StreamState,
  after: number,
): Promise<Completeness> {
  if (after > state.lastSeq) return { complete: false, completeAfter: Infinity, lostUpTo: -1 };
  if (exactTopicOf(filters) === undefined) {
    const complete = await isComplete(stream, filters, after);
    return { complete, completeAfter: complete ? after : Infinity, lostUpTo: complete ? -1 : after };
  }
  const completeAfter = await nothingDroppedAfter(stream, state);
  return { complete: after >= completeAfter, completeAfter, lostUpTo: completeAfter - 1 };
}

/** Clocks of servers and timers of copies differ by less. */
const expiryApartMsMax = 60_000;

/** Whether copies of a stream may differ in what has expired. */
function isExpiring({ expiry }: StreamState): boolean {
  return expiry < Date.now() + expiryApartMsMax;
}

/**
 * What is true of a page when messages expire as it is read: each copy drops them by a timer of its own, so the copy that was read may have dropped what the
 * leader still counted when it was asked.
 * @param later asks for the leader's state once more
 */
async function completenessWhileExpiring(
  stream: NatsStream,
  filters: readonly string[],
  page: ReadPage,
  begin: number,
  after: number,
  later: () => Promise<StreamState>,
): Promise<Completeness> {
  const isTopic = exactTopicOf(filters) !== undefined;
  const from = isTopic ? begin : after;
  const first = page.messages.find(({ offset }) => offset > from)?.offset ?? 0;
  // Before the state is asked for: what the leader drops in between shows there.
  const next = await stream.next(from, [...filters]);
  const known = await completenessOf(stream, filters, await later(), after);
  // A page without a message claims nothing that the leader did not say.
  if (next === 0 || next >= first) return known;
  const completeAfter = isTopic ? Math.max(known.completeAfter, first - 1) : Infinity;
  return { complete: after >= completeAfter, completeAfter, lostUpTo: Math.max(known.lostUpTo, next - 1) };
}

/** Whether nothing that was stored after `offset` was dropped for the filters, by age or by count. */
export async function isComplete(
  stream: NatsStream,
  filters: readonly string[],
  offset: number,
): Promise<boolean> {
  const states = await Promise.all(filters.map((filter) => stream.state(filter)));
  for (const state of states) {
    if (offset < state.firstSeq - 1 || offset > state.lastSeq) return false;
    if ((await nothingDroppedAfter(stream, state, offset)) > offset) return false;
  }
  return true;
}

/**
 * The offset after which nothing of the topics that are counted in `state` was dropped. A topic that has dropped messages by count has had as many as the limit
 * ever since, since what expires first is what was dropped; those messages are from before the end of the limit. So a topic that has fewer, or whose oldest
 * message is from later, has dropped nothing by it.
 * @param offset the only one that is of interest: the answer is greater if something was dropped after it
 */
async function nothingDroppedAfter(stream: NatsStream, state: StreamState, offset = -1): Promise<number> {
  const limits = [{ max: state.limit, upTo: Infinity }];
  // A topic that is full by the present limit is looked at in any case.
  if ([...state.subjects.values()].some((count) => count < state.limit)) {
    const past = await stream.limits.read();
    limits.push(...past.filter(({ upTo }) => upTo >= state.firstSeq && upTo > offset));
  }
  const least = Math.min(...limits.map(({ max }) => max));
  const suspects = [...state.subjects].filter(([, count]) => count >= least);
  let dropped = state.firstSeq - 1;
  let isDoubtful = false;
  for (let i = 0; i < suspects.length && (offset < 0 || dropped <= offset); i += oldestAtOnce) {
    const some = suspects.slice(i, i + oldestAtOnce);
    const oldest = await Promise.all(some.map(([subject]) => stream.oldest(subject)));
    for (const [n, [, count]] of some.entries()) {
      const seq = oldest[n] ?? 0;
      if (seq > 0 && limits.some(({ max, upTo }) => count >= max && seq <= upTo)) {
        dropped = Math.max(dropped, seq);
      } else {
        isDoubtful = true;
      }
    }
  }
  // Those from before the end of the limit may have expired between the two answers; then the stream begins later.
  return isDoubtful ? Math.max(dropped, (await stream.state()).firstSeq - 1) : dropped;
}

const oldestAtOnce = 16;
