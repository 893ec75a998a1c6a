import { randomBytes } from 'node:crypto';
import type { KV, KvEntry } from 'nats';
import type { StreamState } from './nats-stream.js';

/** What is kept beside a stream: the name of its incarnation, and how far it is known to have come. */
interface EpochRecord {
  readonly epoch: string;
  /** When the stream was created, as it says itself: another time is another stream. */
  readonly created: string;
  /** A sequence that was seen. A stream that ends before it is an older copy that was restored: it would reuse offsets. */
  readonly seen: number;
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

  /** The epoch of a stream in this state: the known one while it fits, else a new one. */
  async claim(namespace: string, state: StreamState, seenHere: number): Promise<string> {
    for (;;) {
      const entry = await this.#kv.get(keyOf(namespace));
      const known = readRecord(entry);
      const fits =
        known !== undefined &&
        known.created === state.created &&
        state.lastSeq >= known.seen &&
        state.lastSeq >= seenHere;
      if (fits) return known.epoch;
      const epoch = mintEpoch();
      const minted = { epoch, created: state.created, seen: state.lastSeq };
      if (await this.#write(namespace, minted, entry)) return epoch;
    }
  }

  /** Remembers how far the stream has come, so that an older copy is noticed even when every node has restarted. */
  async note(namespace: string, epoch: string, seen: number): Promise<void> {
    const entry = await this.#kv.get(keyOf(namespace));
    const known = readRecord(entry);
    if (known === undefined || known.epoch !== epoch || known.seen >= seen) return;
    // Somebody else who writes at the same moment notes as much.
    await this.#write(namespace, { ...known, seen }, entry);
  }

  /** False when somebody else has written in between. */
  async #write(namespace: string, record: EpochRecord, before: KvEntry | null): Promise<boolean> {
    const value = new TextEncoder().encode(JSON.stringify(record));
    try {
      if (before === null) await this.#kv.create(keyOf(namespace), value);
      else await this.#kv.update(keyOf(namespace), value, before.revision);
      return true;
    } catch (error) {
      if (isWrongRevision(error)) return false;
      throw error;
    }
  }
}

function readRecord(entry: KvEntry | null): EpochRecord | undefined {
  if (entry?.operation !== 'PUT') return undefined;
  try {
    const value = JSON.parse(entry.string()) as Partial<EpochRecord>;
    const { created, epoch, seen } = value;
    if (typeof epoch !== 'string' || typeof created !== 'string' || typeof seen !== 'number')
      return undefined;
    return { epoch, created, seen };
  } catch {
    // Written by nobody of us: a new epoch is the safe answer.
    return undefined;
  }
}

function mintEpoch(): string {
  return BigInt(`0x${randomBytes(5).toString('hex')}`).toString(36);
}

/** Keys of a bucket hold no colon; topics no slash. */
function keyOf(namespace: string): string {
  return namespace.replaceAll(':', '/');
}

function isWrongRevision(error: unknown): boolean {
  return error instanceof Error && /wrong last sequence/i.test(error.message);
}
