import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { WebSocketServer } from 'ws';

/**
 * A process that fans out with the package `ws`, in the way of its documentation: what comes over `/pub` is sent to each socket of `/sub` as it came.
 * Announces itself with the line of a node, so that both are started in the same way.
 */

const subscribers = new WebSocketServer({ noServer: true });
const publishers = new WebSocketServer({ noServer: true });
publishers.on('connection', (socket) => {
  socket.on('message', (data, binary) => {
    for (const client of subscribers.clients) {
      if (client.readyState === client.OPEN) client.send(data, { binary });
    }
  });
});
// A client that is cut is no failure of the server.
for (const side of [subscribers, publishers]) {
  side.on('connection', (socket) => socket.on('error', () => undefined));
}

const server = createServer();
server.on('upgrade', (request, socket, head) => {
  const side = request.url?.startsWith('/pub') === true ? publishers : subscribers;
  side.handleUpgrade(request, socket, head, (client) => side.emit('connection', client, request));
});
server.listen(0, '127.0.0.1', 4096, () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`listening http://127.0.0.1:${port} node=ws engine=ws\n`);
});
process.once('SIGTERM', () => process.exit(0));
