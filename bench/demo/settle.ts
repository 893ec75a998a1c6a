import type { Checker } from './checker.js';
import type { Fleet } from './users.js';
import { kinds, sum, type Verdict } from './verdict.js';

/** Lets one waiter know that a message has arrived. */
export class Progress {
  #wake: (() => void) | undefined;

  made(): void {
    this.#wake?.();
  }

  /** Waits for the next arrival. @returns false when none came in time */
  next(timeoutMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (arrived: boolean) => {
        clearTimeout(timer);
        this.#wake = undefined;
        resolve(arrived);
      };
      const timer = setTimeout(() => end(false), timeoutMs);
      this.#wake = () => end(true);
    });
  }
}

/**
 * Waits until everything that is owed has arrived, or nothing has for `stallMs`. What came too much would come after that, so everybody is asked
 * for a pong before the verdict: it arrives behind all that was sent.
 */
export async function settle(
  fleet: Pick<Fleet, 'barrier'>,
  checker: Checker,
  progress: Progress,
  stallMs: number,
): Promise<Verdict> {
  const owed = checker.owed();
  const missing = () => kinds.some((kind) => checker.arrived[kind] < owed[kind]);
  let moving = true;
  while (moving && missing()) moving = await progress.next(stallMs);
  for (;;) {
    await inTime(fleet.barrier(), stallMs, 'not everybody had a pong to the last ping');
    const verdict = checker.verdict();
    // One message too many may have stood in for one that is still on its way.
    const lost = kinds.some((kind) => sum(verdict.counts[kind]).lost > 0);
    if (!lost || !moving) return verdict;
    moving = await progress.next(stallMs);
  }
}

async function inTime(work: Promise<void>, timeoutMs: number, fault: string): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${fault} within ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
