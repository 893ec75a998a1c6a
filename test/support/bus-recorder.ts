import type { BusHandler, LiveMessage, StoredMessage } from '../../broker/bus.js';
import { Signal } from './signal.js';

/** Collects what a bus delivers, by interest. */
export class BusRecorder implements BusHandler {
  readonly signal = new Signal();
  /** Called in each delivery, after it was recorded. */
  during: (key: string) => void = () => undefined;
  readonly #live = new Map<string, LiveMessage[]>();
  readonly #behind = new Map<string, number[]>();
  readonly #unparsable = new Map<string, string[]>();
  readonly #stored = new Map<string, StoredMessage[]>();

  /** Offsets that the engine knows to have been lost on the way. */
  behind(key: string): number[] {
    return listOf(this.#behind, key);
  }

  /** One entry for each body that could not be read. */
  unparsable(key: string): string[] {
    return listOf(this.#unparsable, key);
  }

  live(key: string): LiveMessage[] {
    return listOf(this.#live, key);
  }

  stored(key: string): StoredMessage[] {
    return listOf(this.#stored, key);
  }

  onLive(key: string, message: LiveMessage): void {
    this.live(key).push(message);
    this.#delivered(key);
  }

  onStored(key: string, message: StoredMessage): void {
    this.stored(key).push(message);
    this.#delivered(key);
  }

  onEpoch(): void {
    throw new Error('the epoch changed');
  }

  onBehind(key: string, offset: number): void {
    listOf(this.#behind, key).push(offset);
    this.signal.notify();
  }

  onUnparsable(key: string): void {
    listOf(this.#unparsable, key).push(key);
    this.signal.notify();
  }

  onConnected(): void {
    this.signal.notify();
  }

  #delivered(key: string): void {
    this.during(key);
    this.signal.notify();
  }
}

function listOf<T>(lists: Map<string, T[]>, key: string): T[] {
  const list = lists.get(key) ?? [];
  lists.set(key, list);
  return list;
}
