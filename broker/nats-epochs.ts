import { randomBytes } from 'node:crypto';
import type { KV, KvEntry } from 'nats';
import { keyOf, putOver } from './nats-bucket.js';
import type { NatsStream, StreamMark, StreamState } from './nats-stream.js';

/** What is kept beside a stream: the name of its incarnation, and how far it is known to have come. */
interface EpochRecord {
  readonly epoch: string;
  /** A message that was seen. A stream that does not have it is another one, or an older copy that was restored: it reuses offsets. */
  readonly seen: StreamMark;
}

/** The incarnation of a stream, and its state when that was settled. */
export interface Claim {
  readonly epoch: string;
  readonly state: StreamState;
}

/**
 * Epochs of the durable namespaces, in a key-value bucket that all nodes share. Whoever notices first that a stream is not the one that
 * it was mints the new epoch; the others take it over.
 */
export class NatsEpochs {
  readonly #kv: KV;

  constructor(kv: KV) {
    this.#kv = kv;
  }

  /**
   * The epoch of a stream: the known one while it fits, else a new one.
   * @param seenHere what this node has seen of the stream in the epoch that it knows: a message of its last audit, and the newest sequence since
   * @param isLost the stream of that epoch is known to be gone
   */
  async claim(
    stream: NatsStream,
    seenHere?: { readonly epoch: string; readonly seen: StreamMark; readonly newest: number },
    isLost = false,
  ): Promise<Claim> {
    for (;;) {
      const entry = await this.#kv.get(keyOf(stream.namespace));
      const known = readRecord(entry);
      // Asked after the record was read: others note how far the stream has come, and one that is asked before may seem to have lost that.
      const state = await stream.state();
      const fits =
        known !== undefined &&
        !(isLost && seenHere?.epoch === known.epoch) &&
        (await stream.holds(state, known.seen)) &&
        // When another node has minted a new epoch already, this one's mark is of the stream before.
        (seenHere?.epoch !== known.epoch ||
          ((await stream.reaches(state, seenHere.newest)) && (await stream.holds(state, seenHere.seen))));
      // A leader that had to catch up first has another state by now.
      if (fits && state.lastSeq < known.seen.seq) continue;
      if (fits) return { epoch: known.epoch, state };
      const epoch = mintEpoch();
      const minted = { epoch, seen: stream.markOf(state) };
      if (await putOver(this.#kv, keyOf(stream.namespace), minted, entry)) {
        await stream.limits.cut(state.lastSeq);
        return { epoch, state };
      }
    }
  }

  /** Remembers how far the stream has come, so that an older copy is noticed even when every node has restarted. */
  async note(namespace: string, epoch: string, seen: StreamMark): Promise<void> {
    const entry = await this.#kv.get(keyOf(namespace));
    const known = readRecord(entry);
    if (known === undefined || known.epoch !== epoch || known.seen.seq >= seen.seq) return;
    // Somebody else who writes at the same moment notes as much.
    await putOver(this.#kv, keyOf(namespace), { ...known, seen }, entry);
  }
}

function readRecord(entry: KvEntry | null): EpochRecord | undefined {
  if (entry?.operation !== 'PUT') return undefined;
  try {
    const { epoch, seen } = JSON.parse(entry.string()) as Partial<EpochRecord>;
    const isWhole =
      typeof epoch === 'string' &&
      typeof seen?.seq === 'number' &&
      typeof seen.time === 'number' &&
      typeof seen.created === 'number';
    return isWhole ? { epoch, seen } : undefined;
  } catch {
    // Written by nobody of us: a new epoch is the safe answer.
    return undefined;
  }
}

function mintEpoch(): string {
  return BigInt(`0x${randomBytes(5).toString('hex')}`).toString(36);
}
