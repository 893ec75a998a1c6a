import type { ChildProcess } from 'node:child_process';

const running = new Set<ChildProcess>();
let isWatchingExit = false;

/** Should this process end without having stopped the child, it goes too. One listener for all, as there may be a hundred. */
export function endWithThisProcess(child: ChildProcess): void {
  running.add(child);
  const forget = (): void => void running.delete(child);
  child.once('close', forget);
  // One that could not be started does not close.
  child.once('error', forget);
  if (isWatchingExit) return;
  isWatchingExit = true;
  process.once('exit', () => {
    for (const one of running) one.kill('SIGKILL');
  });
}
