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

export type Completeness = Pick<HistoryPage, 'complete' | 'completeAfter' | 'lostUpTo'>;

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
 * What a stream can tell of the positions in a page that begins at or before `after`.
 * @param state after the reading, with the count of the topic when it is one
 */
export async function completenessOf(
  stream: NatsStream,
  filters: readonly string[],
  state: StreamState,
  after: number,
): Promise<Completeness> {
  if (after > state.lastSeq) return { complete: false, completeAfter: Infinity, lostUpTo: -1 };
  const topic = exactTopicOf(filters);
  if (topic === undefined) {
    const complete = await stream.isComplete(filters, after);
    return { complete, completeAfter: complete ? after : Infinity, lostUpTo: complete ? -1 : after };
  }
  const [count = 0] = state.subjects.values();
  // A topic that is not full has dropped nothing by count.
  const oldest = count < stream.settings.historyMax ? 0 : await stream.oldest(topic);
  const completeAfter = Math.max(state.firstSeq - 1, oldest);
  return { complete: after >= completeAfter, completeAfter, lostUpTo: completeAfter - 1 };
}
