import { parsePosition, type Position } from '../protocol/position.js';
import { textOf, TopicastError } from './errors.js';

/**
 * Where positions outlive the page. `sessionStorage` (each tab for itself), `localStorage` (one tab at a time: two of them would overwrite
 * each other's) and React Native's `AsyncStorage` fit as they are.
 */
export interface CursorStorage {
  getItem(key: string): string | null | undefined | Promise<string | null | undefined>;
  setItem(key: string, value: string): unknown;
}

/** Positions by topic or pattern, each `epoch:offset`. */
export type Cursors = Readonly<Record<string, string>>;

/** A storage that lasts as long as the object: to hand positions from one client to the next within a process. */
export function memoryStorage(): CursorStorage {
  const items = new Map<string, string>();
  return { getItem: (key) => items.get(key), setItem: (key, value) => void items.set(key, value) };
}

/** How long positions may run ahead of what is stored. A page that is closed or hidden stores at once. */
const saveMs = 1_000;

/** Keeps positions in a storage: read once, written now and then. A storage that fails is reported and otherwise ignored. */
export class CursorKeeper {
  readonly #storage: CursorStorage | undefined;
  readonly #positions: () => Cursors;
  readonly #onError: (error: TopicastError) => void;
  #key: string | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #saved = '';

  constructor(
    storage: CursorStorage | undefined,
    positions: () => Cursors,
    onError: (error: TopicastError) => void,
  ) {
    this.#storage = storage;
    this.#positions = positions;
    this.#onError = onError;
  }

  /** Reads what was stored for this user at this address. */
  async load(key: string): Promise<Map<string, Position>> {
    const stored = new Map<string, Position>();
    if (this.#storage === undefined) return stored;
    try {
      const text = await this.#storage.getItem(key);
      const parsed = JSON.parse(text ?? '{}') as Record<string, unknown> | null;
      for (const [topic, value] of Object.entries(parsed ?? {})) {
        const position = parsePosition(String(value));
        if (position.ok) stored.set(topic, position.value);
      }
    } catch (thrown) {
      this.#report(thrown);
    }
    this.#key = key;
    return stored;
  }

  /** Positions have changed. Cheap: called for every message. */
  touch(): void {
    if (this.#key === undefined) return;
    this.#timer ??= setTimeout(() => this.save(), saveMs);
  }

  save(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#key === undefined) return;
    const text = JSON.stringify(this.#positions());
    if (text === this.#saved) return;
    this.#saved = text;
    try {
      const saving = this.#storage?.setItem(this.#key, text);
      if (saving instanceof Promise) saving.catch((thrown: unknown) => this.#report(thrown));
    } catch (thrown) {
      this.#report(thrown);
    }
  }

  #report(cause: unknown): void {
    this.#onError(new TopicastError('storage', `positions are not kept: ${textOf(cause)}`, { cause }));
  }
}
