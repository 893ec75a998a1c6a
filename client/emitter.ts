/** Typed events. Listeners are called in the order in which they came, with one value. */
export class Emitter<Events extends object> {
  readonly #listeners = new Map<keyof Events, Set<(event: never) => void>>();

  /** @returns ends the listening */
  on<K extends keyof Events>(name: K, listener: (event: Events[K]) => void): () => void {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners);
    // A wrapper of its own, so that a listener given twice is called twice and each end ends one.
    const own = (event: Events[K]): void => listener(event);
    listeners.add(own);
    return () => void listeners.delete(own);
  }

  /** @returns whether anybody listened. `onThrow` gets what a listener throws; the others are called all the same. */
  emit<K extends keyof Events>(name: K, event: Events[K], onThrow: (thrown: unknown) => void): boolean {
    const listeners = this.#listeners.get(name);
    if (listeners === undefined || listeners.size === 0) return false;
    for (const listener of [...listeners] as ((event: Events[K]) => void)[]) {
      try {
        listener(event);
      } catch (thrown) {
        onThrow(thrown);
      }
    }
    return true;
  }
}
