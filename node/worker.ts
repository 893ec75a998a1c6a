import { startNode, type Node } from './compose.js';
import { createLogger, type Logger } from './log.js';
import type { FromWorker, ToWorker } from './worker-messages.js';

/**
 * A process of `TOPICAST_WORKERS`: one node, told what to do by the supervisor (`workers.ts`). It drains and ends when it is told to, gets SIGTERM
 * by itself, or the supervisor is gone.
 */
let starting: Promise<Node> | undefined;
let stopping = false;

process.on('message', (message: ToWorker) => {
  if (message.type === 'start') start(message);
  else stop();
});
process.on('SIGTERM', stop);
// A terminal sends it to the whole group: the supervisor has it too, and says what to do.
process.on('SIGINT', () => undefined);
process.on('disconnect', () => {
  // A supervisor that ends while its workers drain was told to end at once.
  if (stopping) process.exit(1);
  stop();
});

function start({ config, number }: ToWorker & { type: 'start' }): void {
  const log = createLogger(config.logLevel).child({ worker: number });
  starting = startNode(config, log, { sharedPort: true });
  starting.then(
    ({ id, url }) => tell({ type: 'listening', url, nodeId: id }, () => undefined),
    (error: unknown) => {
      tell({ type: 'failed', message: messageOf(error, log) }, () => process.exit(1));
    },
  );
}

function stop(): void {
  if (stopping) return;
  stopping = true;
  (starting ?? Promise.resolve(undefined))
    .then((node) => node?.stop())
    .then(
      () => process.exit(0),
      () => process.exit(1),
    );
}

function tell(message: FromWorker, sent: () => void): void {
  if (process.connected) process.send?.(message, undefined, undefined, sent);
  else sent();
}

function messageOf(error: unknown, log: Logger): string {
  log.error({ err: error }, 'the worker could not start');
  return error instanceof Error ? error.message : String(error);
}
