import { matches } from '../protocol/topic.js';
import { unavailable } from './errors.js';
import type { NatsReader } from './nats-reader.js';
import type { NatsStream, StreamState } from './nats-stream.js';

export interface AuditedInterest {
  readonly filters: readonly string[];
  /** Whether it is one topic, not a pattern or several of them. */
  readonly exact: boolean;
  /** The newest offset that was handed on. */
  readonly delivered: number;
}

export interface Audit<T extends AuditedInterest> {
  readonly interests: readonly T[];
  /** Whether an interest is still there; the audit takes a while. */
  readonly isOpen: (interest: T) => boolean;
  /** What was stored up to here has been audited before. */
  readonly after: number;
  readonly state: StreamState;
  /** What was stored less than this ago may still be on its way. */
  readonly graceMs: number;
}

/** A scan of the stream costs one message for each that was stored, a question for one interest about thirty. */
const scanPerQuestion = 30;
const questionsAtOnce = 16;
/** How often, and after which pause, a copy of the stream that lags is asked again. */
const scansMax = 10;
const scanAgainMs = 100;

/**
 * The interests of which the stream holds something newer than was handed on, each with the offset of it.
 * @throws BrokerError `unavailable`, JetStreamError
 */
export async function findBehind<T extends AuditedInterest>(
  stream: NatsStream,
  reader: NatsReader,
  { after, graceMs, interests, isOpen, state }: Audit<T>,
): Promise<(readonly [T, number])[]> {
  await pause(graceMs);
  const isScanCheaper = state.lastSeq - after <= interests.length * scanPerQuestion;
  const newest = isScanCheaper
    ? newestIn(await scan(stream, reader, after, state.lastSeq), interests)
    : await askNewest(stream, interests);
  const behind = (): typeof newest =>
    newest.filter(([interest, offset]) => offset > interest.delivered && isOpen(interest));
  // What came after the state was asked may have been stored just now.
  if (behind().some(([, offset]) => offset > state.lastSeq)) await pause(graceMs);
  return behind();
}

async function askNewest<T extends AuditedInterest>(
  stream: NatsStream,
  interests: readonly T[],
): Promise<(readonly [T, number])[]> {
  const found: (readonly [T, number])[] = [];
  for (let i = 0; i < interests.length; i += questionsAtOnce) {
    const some = interests.slice(i, i + questionsAtOnce);
    found.push(
      ...(await Promise.all(some.map(async (one) => [one, await stream.newest(one.filters)] as const))),
    );
  }
  return found;
}

/** The newest sequence of each topic in `(after, upTo]`, by a copy of the stream that has come as far as the leader had. */
async function scan(
  stream: NatsStream,
  reader: NatsReader,
  after: number,
  upTo: number,
): Promise<ReadonlyMap<string, number>> {
  const newest = new Map<string, number>();
  let read = after;
  for (let scans = 0; scans < scansMax; scans++) {
    if (scans > 0) await pause(scanAgainMs);
    const part = await reader.scan(stream, read, upTo);
    for (const [topic, seq] of part.newest) newest.set(topic, seq);
    read = part.lastRead;
    const next = read < upTo ? await stream.next(read) : 0;
    if (next === 0 || next > upTo) return newest;
  }
  throw unavailable('a copy of the stream lags too far behind for an audit');
}

function newestIn<T extends AuditedInterest>(
  scanned: ReadonlyMap<string, number>,
  interests: readonly T[],
): (readonly [T, number])[] {
  return interests.map((interest) => {
    const [only] = interest.filters;
    if (interest.exact && only !== undefined) return [interest, scanned.get(only) ?? 0] as const;
    let newest = 0;
    for (const [topic, seq] of scanned) {
      if (seq > newest && interest.filters.some((filter) => matches(filter, topic))) newest = seq;
    }
    return [interest, newest] as const;
  });
}

async function pause(ms: number): Promise<void> {
  if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms).unref());
}
