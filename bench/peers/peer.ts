import type { FleetOptions } from '../fleet/fleet-plan.js';
import type { Publisher } from '../fleet/publisher.js';
import type { ScenarioContext } from '../scenarios/scenario.js';

/** A server that fans out one topic, whoever has made it. */
export interface Peer {
  readonly name: PeerName;
  /** Its counts must be exact: it throws nothing away. Of the others it is a figure what they lose. */
  readonly exact: boolean;
  /** Whether it is on this machine. */
  look(): PeerFound;
  /** Starts it; it ends with the context. @throws Error when it cannot be started */
  start(context: ScenarioContext, settings: PeerSettings): Promise<RunningPeer>;
}

/** Topicast first, for whoever reads the table; the floor before that. */
export const peerNames = [
  'bare',
  'topicast-live',
  'topicast-durable',
  'ws',
  'socket.io',
  'nats',
  'nchan',
  'centrifugo',
] as const;
export type PeerName = (typeof peerNames)[number];

export type PeerFound =
  /** What it calls itself: `8.23.0`. */
  | { readonly release: string }
  /** A command, or where to read on. */
  | { readonly howToGet: string };

export interface PeerSettings {
  /** That it must be able to hold. */
  readonly sockets: number;
  /** Of Node.js, for a server that runs on it. */
  readonly flags: readonly string[];
}

export interface RunningPeer {
  /** `http://host:port` of the clients. */
  readonly url: string;
  /** Processes whose CPU and memory are the cost. */
  readonly pids: readonly number[];
  readonly topic: string;
  readonly subscribe: Pick<FleetOptions, 'path' | 'offerProtocol' | 'readyOn' | 'dialect'>;
  /** The way that it offers to one publisher, on a connection that stays. @param bytes of a payload */
  openPublisher(bytes: number): Promise<Publisher>;
}
