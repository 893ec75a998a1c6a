/** How long a test waits for something that is bound to happen. Long, because a machine may be slow; a pass never waits it out. */
const deadlineMsDefault = 20_000;

/** Lets a test wait until what it collects from callbacks is as it should be. */
export class Signal {
  readonly #waiting = new Set<() => void>();

  /** Call it after each change of what `until` looks at. */
  notify(): void {
    for (const look of [...this.#waiting]) look();
  }

  /** Settles once `holds` answers true, asked now and after every `notify`; rejects with `what` after the deadline. */
  until(what: string, holds: () => boolean, deadlineMs = deadlineMsDefault): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(look);
      };
      const look = (): void => {
        try {
          if (!holds()) return;
          end();
          resolve();
        } catch (error) {
          end();
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      };
      const timer = setTimeout(() => {
        end();
        reject(new Error(`did not happen in ${deadlineMs} ms: ${what}`));
      }, deadlineMs);
      this.#waiting.add(look);
      look();
    });
  }
}

/** Asks again and again until the answer is true: for what changes with time alone and tells nobody. */
export async function eventually(
  what: string,
  ask: () => Promise<boolean>,
  deadlineMs = deadlineMsDefault,
): Promise<void> {
  const end = Date.now() + deadlineMs;
  while (!(await ask())) {
    if (Date.now() > end) throw new Error(`did not happen in ${deadlineMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
