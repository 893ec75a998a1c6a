import type { BusHandler, LiveMessage, StoredMessage } from '../../broker/bus.js';
import { Signal } from './signal.js';

/** Collects what a bus delivers, by interest. */
export class BusRecorder implements BusHandler {
  readonly signal = new Signal();
  /** Called in each delivery, after it was recorded. */
  during: (key: string) => void = () => undefined;
  readonly #live = new Map<string, LiveMessage[]>();
  readonly #stored = new Map<string, StoredMessage[]>();

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
