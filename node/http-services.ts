import type { TopicBus } from '../broker/bus.js';
import type { Namespaces } from '../broker/namespaces.js';
import type { SessionStore } from '../broker/sessions.js';
import type { Authenticator } from './auth.js';
import type { Channels } from './channels.js';
import type { Config } from './config.js';
import type { Connections } from './connections.js';
import type { Direct } from './direct.js';
import type { Handshake } from './handshake.js';
import type { Logger } from './log.js';
import type { Metrics } from './metrics.js';
import type { Peers } from './peers.js';
import type { Publisher } from './publisher.js';
import type { SameSiteRules } from './same-site.js';
import type { Subscriptions } from './subscriptions.js';

/** Without `metricsPort`, `/metrics` is among the routes and wants an admin grant; otherwise `metrics-server.ts` serves it there. */
export type HttpConfig = Pick<
  Config,
  'limits' | 'allowQueryToken' | 'console' | 'directTtlSec' | 'metricsPort'
>;

/** What the HTTP side needs of the node. */
export interface HttpServices {
  readonly nodeId: string;
  readonly config: HttpConfig;
  readonly bus: TopicBus;
  readonly namespaces: Namespaces;
  readonly store: SessionStore;
  /** False on a cluster without Redis. */
  readonly hasUsers: boolean;
  readonly publisher: Publisher;
  readonly direct: Direct;
  readonly peers: Peers;
  readonly connections: Connections;
  readonly subscriptions: Subscriptions;
  readonly channels: Channels;
  readonly handshake: Handshake;
  readonly authenticator: Authenticator;
  readonly sameSite: SameSiteRules;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Whether the node should get traffic: the cluster is in reach and it is not draining. */
  isReady(): boolean;
  isDraining(): boolean;
}
