import { centrifugoPeer } from './centrifugo.js';
import { natsPeer } from './nats.js';
import { nchanPeer } from './nchan.js';
import { ownPeers } from './own.js';
import type { Peer } from './peer.js';
import { socketIoPeer } from './socket-io.js';
import { wsPeer } from './ws.js';

/** All that can be compared, in the order of the table. */
export const peers: readonly Peer[] = [
  ...ownPeers,
  wsPeer,
  socketIoPeer,
  natsPeer,
  nchanPeer,
  centrifugoPeer,
];
