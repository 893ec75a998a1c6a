import type { Readable, Writable } from 'node:stream';

/** What a command touches of the process that it runs in. */
export interface CliIo {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: Readable;
  /** Results only. */
  readonly stdout: Writable;
  /** Everything for people. */
  readonly stderr: Writable;
  /** Calls back at the first SIGINT or SIGTERM; a second one ends the process at once. Returns how to stop listening. */
  onStopSignal(stop: () => void): () => void;
}

export function processIo(): CliIo {
  return {
    env: process.env,
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    onStopSignal: (stop) => {
      const forget = (): void => {
        process.off('SIGINT', once).off('SIGTERM', once);
      };
      const once = (): void => {
        forget();
        stop();
      };
      process.on('SIGINT', once).on('SIGTERM', once);
      return forget;
    },
  };
}

/** Resolves when the text was handed on. A reader that left is told by `error` on the stream, not here. */
export function writeLine(stream: Writable, line: string): Promise<void> {
  return new Promise((resolve) => stream.write(`${line}\n`, () => resolve()));
}

export function isBrokenPipe(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EPIPE';
}
