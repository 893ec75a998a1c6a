import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import type * as SocketIo from 'socket.io';
import { socketIoEvent } from '../fleet/dialects/socket-io.js';
import { socketIoPublishEvent, socketIoRoom } from './socket-io-names.js';

/**
 * A process that fans out with Socket.IO: every client is in one room, and what one of them emits goes to all others in there. Announces itself with
 * the line of a node. Socket.IO is not a dependency of Topicast: whoever compares installs it.
 */

const { Server } = createRequire(import.meta.url)('socket.io') as typeof SocketIo;
const server = createServer();
const io = new Server(server, { serveClient: false, transports: ['websocket'] });

io.on('connection', (socket) => {
  void socket.join(socketIoRoom);
  socket.on(socketIoPublishEvent, (data: unknown) => {
    socket.to(socketIoRoom).emit(socketIoEvent, data);
  });
});

server.listen(0, '127.0.0.1', 4096, () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`listening http://127.0.0.1:${port} node=socket.io engine=socket.io\n`);
});
process.once('SIGTERM', () => process.exit(0));
