import { nodeFrame } from '../floor/subjects.js';
import { openHttpPublisher } from '../publish/http-publisher.js';
import { installed } from '../servers/binaries.js';
import { nginxModule, startNginx } from '../servers/nginx-kit.js';
import type { Peer } from './peer.js';

const topic = 'item.floor';
const moduleName = 'ngx_nchan_module.so';
/** Out of the box, but for where a new client begins: with what comes after it. */
const locations = [
  'location = /sub { nchan_subscriber websocket; nchan_channel_id floor; nchan_subscriber_first_message newest; }',
  'location = /pub { nchan_publisher http; nchan_channel_id floor; }',
].join(' ');

/** nginx with the module Nchan, one worker. */
export const nchanPeer: Peer = {
  name: 'nchan',
  exact: false,
  look() {
    const nginx = installed.nginx();
    return nginx === undefined || nginxModule(nginx, moduleName) === undefined
      ? { howToGet: 'apt-get install nginx libnginx-mod-nchan' }
      : { release: `nginx ${nginx.version}` };
  },
  async start(context, { sockets }) {
    const binary = installed.nginx();
    const module = binary === undefined ? undefined : nginxModule(binary, moduleName);
    if (binary === undefined || module === undefined) {
      throw new Error('nginx with Nchan is not here any more');
    }
    const server = await startNginx({
      binary,
      modules: [module],
      connectionsMax: sockets,
      server: locations,
    });
    context.defer(() => server.stop());
    return {
      url: server.url,
      pids: server.pids,
      topic,
      subscribe: { path: '/sub', offerProtocol: false, readyOn: 'upgrade' },
      openPublisher: (bytes) =>
        openHttpPublisher({ url: server.url, path: '/pub', topic, bytes, body: nodeFrame }),
    };
  },
};
