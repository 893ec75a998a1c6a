import { builtFile } from '../built.js';
import { openPublisher } from '../fleet/publisher.js';
import { nodeFrame } from '../floor/subjects.js';
import { packageVersion } from './packages.js';
import type { Peer } from './peer.js';

const topic = 'item.floor';

/** The package `ws`, on which many servers in Node.js are built. Its sockets keep what a client has not read, without a bound. */
export const wsPeer: Peer = {
  name: 'ws',
  exact: true,
  look: () => ({ release: packageVersion('ws') ?? '' }),
  async start(context, { flags }) {
    const server = await context.startNode({ entry: builtFile('bench/peers/ws-server.js'), flags });
    return {
      url: server.url,
      pids: [server.pid],
      topic,
      subscribe: { path: '/sub', offerProtocol: false, readyOn: 'upgrade' },
      openPublisher: (bytes) =>
        openPublisher({
          url: server.url,
          bytes,
          topics: [topic],
          path: '/pub',
          offerProtocol: false,
          wrap: nodeFrame,
        }),
    };
  },
};
