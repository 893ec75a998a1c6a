/** Tells a person at standard error what is going on. */
export interface Progress {
  /** One line that stays. */
  say(text: string): void;
  /** How far something is: a bar in a terminal, elsewhere a line every few seconds. */
  bar(label: string, done: number, total: number): void;
  /** Ends the bar. */
  done(): void;
}

export interface ProgressOutput {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

const plainEveryMs = 5_000;
const barChars = 30;
const clearLine = '\r\x1b[K';

export function createProgress(
  output: ProgressOutput,
  now: () => number = () => performance.now(),
): Progress {
  const isTerminal = output.isTTY === true;
  let isBarShown = false;
  let saidAtMs = now();
  const clear = (): void => {
    if (isBarShown) output.write(clearLine);
    isBarShown = false;
  };
  return {
    say(text) {
      clear();
      output.write(`${text}\n`);
    },
    bar(label, done, total) {
      const counts = `${label} ${done.toLocaleString('en-US')} of ${total.toLocaleString('en-US')}`;
      if (isTerminal) {
        const filled = total === 0 ? barChars : Math.round((Math.min(done, total) / total) * barChars);
        output.write(`${clearLine}${'█'.repeat(filled)}${'░'.repeat(barChars - filled)} ${counts}`);
        isBarShown = true;
      } else if (now() - saidAtMs >= plainEveryMs) {
        saidAtMs = now();
        output.write(`${counts}\n`);
      }
    },
    done: clear,
  };
}
