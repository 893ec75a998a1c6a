import { createRequire } from 'node:module';
import type * as Uws from 'uWebSockets.js';

/**
 * The floor: a µWebSockets process that does nothing but fan out. Sockets of `/sub` are subscribed as they open; what comes over `/pub` is
 * published to all of them as it came. Announces itself with the line of a node, so that both are started in the same way.
 */

const uws = createRequire(import.meta.url)('uWebSockets.js') as typeof Uws;
const topic = 'floor';
/** What a node allows, so that neither server is stricter. */
const bufferBytesMax = 1024 * 1024;

const app = uws
  .App()
  .ws('/sub', {
    maxBackpressure: bufferBytesMax,
    idleTimeout: 960,
    sendPingsAutomatically: false,
    open: (ws) => void ws.subscribe(topic),
  })
  .ws('/pub', {
    idleTimeout: 960,
    message: (_ws, message, isBinary) => void app.publish(topic, message, isBinary),
  });

app.listen('127.0.0.1', 0, (socket) => {
  if (socket === false) throw new Error('cannot listen on 127.0.0.1');
  process.stdout.write(
    `listening http://127.0.0.1:${uws.us_socket_local_port(socket)} node=bare engine=uws\n`,
  );
});
process.once('SIGTERM', () => process.exit(0));
