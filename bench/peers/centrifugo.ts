import { openHttpPublisher } from '../publish/http-publisher.js';
import { installed } from '../servers/binaries.js';
import { centrifugoRelease, startCentrifugo } from '../servers/centrifugo-kit.js';
import type { Peer } from './peer.js';

const channel = 'item.floor';

/** Centrifugo with its memory engine; published to over its HTTP API. */
export const centrifugoPeer: Peer = {
  name: 'centrifugo',
  exact: false,
  look() {
    const binary = installed.centrifugo();
    return binary === undefined
      ? { howToGet: 'go install github.com/centrifugal/centrifugo/v6@latest' }
      : { release: centrifugoRelease(binary) };
  },
  async start(context) {
    const binary = installed.centrifugo();
    if (binary === undefined) throw new Error('Centrifugo is not here any more');
    const server = await startCentrifugo(binary);
    context.defer(() => server.stop());
    return {
      url: server.url,
      pids: [server.pid],
      topic: channel,
      subscribe: { path: '/connection/websocket', offerProtocol: false, dialect: 'centrifugo' },
      openPublisher: (bytes) =>
        openHttpPublisher({
          url: server.url,
          path: '/api/publish',
          headers: { 'X-API-Key': server.apiKey },
          topic: channel,
          bytes,
          body: ({ data, topic }) =>
            `{"channel":"${topic}","data":${data.format === 'json' ? data.text : 'null'}}`,
        }),
    };
  },
};
