// Stands for a worker in the tests of the supervisor: notes in the file that its `prefix` names what happens to it, says where it would listen, and fails or
// crashes when its name begins so.
import { appendFileSync, existsSync, writeFileSync } from 'node:fs';

let settings;

process.on('message', (message) => {
  if (message.type === 'stop') return end('stop');
  settings = { ...message.config, number: message.number };
  note('start');
  if (settings.nodeName.startsWith('broken')) {
    return process.send({ type: 'failed', message: 'no room on this machine' }, undefined, undefined, () =>
      process.exit(1),
    );
  }
  // Crashes once.
  const crashed = `${settings.prefix}-crashed`;
  const crashes = settings.nodeName.startsWith('crashing') && settings.number === 2 && !existsSync(crashed);
  if (crashes) writeFileSync(crashed, '');
  const { nodeName, port } = settings;
  const listening = { type: 'listening', url: `http://h:${port}`, nodeId: `${nodeName}-${process.pid}` };
  process.send(listening, undefined, undefined, () => crashes && process.exit(7));
});
process.on('SIGTERM', () => end('SIGTERM'));
process.on('disconnect', () => process.exit(0));

function end(why) {
  note(why);
  process.exit(0);
}

function note(what) {
  appendFileSync(
    settings.prefix,
    `${what} ${settings.number} ${settings.nodeName} ${settings.port} ${process.pid}\n`,
  );
}
