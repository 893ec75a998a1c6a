import { openNatsPublisher } from '../publish/nats-publisher.js';
import { installed } from '../servers/binaries.js';
import { startNats } from '../servers/nats-kit.js';
import { freePorts } from '../servers/server-process.js';
import type { Peer } from './peer.js';

const subject = 'item.floor';

/** A NATS server to which clients come over its own WebSocket listener, without JetStream. */
export const natsPeer: Peer = {
  name: 'nats',
  exact: false,
  look() {
    const server = installed.nats();
    return server === undefined
      ? {
          howToGet: 'apt-get install nats-server, or go install github.com/nats-io/nats-server/v2@v2.11.10',
        }
      : { release: server.version };
  },
  async start(context) {
    const version = installed.nats()?.version;
    const [port = 0] = await freePorts(1);
    const servers = await startNats({
      ...(version === undefined ? {} : { version }),
      jetstream: false,
      config: `websocket { listen: "127.0.0.1:${port}", no_tls: true }`,
    });
    context.defer(() => servers.stop());
    return {
      url: `http://127.0.0.1:${port}`,
      pids: servers.nodes.map((node) => node.process.pid),
      topic: subject,
      subscribe: { path: '/', offerProtocol: false, dialect: 'nats' },
      openPublisher: (bytes) => openNatsPublisher(servers.urls[0] ?? '', subject, bytes),
    };
  },
};
