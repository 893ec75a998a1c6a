import { createInterface } from 'node:readline';
import type { HerdCommand, HerdLine } from './commands.js';
import { Herd } from './herd.js';

/** A process of client sockets; what it is told and answers is in `commands.ts`. */

const napEveryMs = 1;
let herd: Herd | undefined;

const lines = createInterface({ input: process.stdin });
lines.on('line', (line) => {
  // A command that fails ends the process: its parent would wait for an answer for ever.
  run(JSON.parse(line) as HerdCommand).catch((error: unknown) => {
    say({ is: 'failed', reason: error instanceof Error ? error.message : String(error) });
    process.exitCode = 1;
    lines.close();
  });
});
lines.once('close', () => {
  // Sockets that are reset do not linger: with thousands of ports lingering, the next fleet's search for free ones takes seconds.
  herd?.close();
  process.exit();
});
// The parent ends this process by closing its input; Ctrl-C in a terminal reaches both.
process.on('SIGINT', () => undefined);

async function run(command: HerdCommand): Promise<void> {
  if (command.do === 'start') {
    herd = await Herd.create(command.settings);
    if (command.settings.napMs > 0) nap(herd, command.settings.napMs);
    return say({ is: 'started' });
  }
  if (herd === undefined) throw new Error('the first command is start');
  switch (command.do) {
    case 'open':
      await herd.open(command.ramp);
      break;
    case 'begin':
      herd.begin();
      break;
    case 'drop':
      herd.drop(command.share);
      break;
    case 'close':
      herd.close();
      break;
    case 'state':
      break;
  }
  say({ id: command.id, state: herd.state(command.do === 'state' && command.latencies) });
}

function say(line: HerdLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

/** Sleeps between two turns of the event loop while no socket is being opened; the next turn reads what has gathered. */
function nap(sleepy: Herd, ms: number): void {
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  setInterval(() => {
    if (!sleepy.busy) Atomics.wait(sleeper, 0, 0, ms);
  }, napEveryMs);
}
