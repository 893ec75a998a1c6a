import { builtFile } from '../built.js';
import { openSocketIoPublisher } from '../publish/socket-io-publisher.js';
import { packageVersion } from './packages.js';
import type { Peer } from './peer.js';
import { socketIoPath, socketIoPublishEvent } from './socket-io-names.js';

/** Socket.IO over WebSocket, its clients in one room. */
export const socketIoPeer: Peer = {
  name: 'socket.io',
  exact: false,
  look() {
    const release = packageVersion('socket.io');
    return release === undefined ? { howToGet: 'npm install socket.io' } : { release };
  },
  async start(context, { flags }) {
    const server = await context.startNode({ entry: builtFile('bench/peers/socket-io-server.js'), flags });
    return {
      url: server.url,
      pids: [server.pid],
      topic: 'floor',
      subscribe: { path: socketIoPath, offerProtocol: false, dialect: 'socket.io' },
      openPublisher: (bytes) => openSocketIoPublisher(server.url, socketIoPath, socketIoPublishEvent, bytes),
    };
  },
};
