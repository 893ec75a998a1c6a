import type { DialectName } from './dialects/dialect.js';

/**
 * What the bench and a process of client sockets say to each other: one JSON object a line, over the process's standard input and output. A process
 * in another language can take part when it speaks this. `bench/fleet/herd-main.ts` is the one that is shipped.
 *
 * The first line in is `{"do":"start","settings":…}`; every line after it has an `id` that the answer carries back. The end of standard input
 * ends the process.
 */

/** Who the clients say they are. The user of socket i is `prefix` + i, i counted over the whole fleet. */
export interface FleetUsers {
  readonly prefix: string;
  /** Signs an HS256 token for each; absent: the user is named by `?user=`, as a node without keys has it. */
  readonly secret?: string;
  /** Of a token; an hour unless given. */
  readonly ttlSec?: number;
  /** So many sockets one after the other belong to one user; 1 unless given. */
  readonly devices?: number;
}

/** How sockets are opened. */
export interface Ramp {
  /** Sockets a second at most, over all processes. */
  readonly perSec: number;
  /** Upgrades that may be outstanding at once, over all processes. */
  readonly atOnce: number;
  /** Sockets that were told to come later (503, 429) do so after the server's hint and up to as much again. Else they have failed. */
  readonly retryRefused: boolean;
}

export interface HerdSettings {
  /** Socket i goes to `targets[i % targets.length]`. */
  readonly targets: readonly { readonly host: string; readonly port: number }[];
  /** Path of the upgrade. */
  readonly path: string;
  /** No codec: no subprotocol is offered, and frames are those of the JSON codec. */
  readonly codec: 'json' | 'msgpack';
  readonly offerProtocol: boolean;
  /** A socket is ready with the answer to its upgrade, or when all its topics were confirmed. */
  readonly readyOn: 'upgrade' | 'subscribed';
  /** What clients of a server that is no node speak after the upgrade; absent: they speak as those of a node do. */
  readonly dialect?: DialectName;
  readonly sockets: number;
  /** The number of the first socket in the whole fleet. */
  readonly first: number;
  /** Socket i subscribes to `groups[i % groups.length]`; topics or patterns. */
  readonly groups: readonly (readonly string[])[];
  readonly users?: FleetUsers;
  /** `?device=` of each. */
  readonly device?: string;
  /** Where sockets come from, in turn; empty: the system chooses. */
  readonly sources: readonly string[];
  /** Reads what has gathered at most once in so many ms, while no socket is being opened; 0 reads at once. */
  readonly napMs: number;
  /** Takes the latency of each message. */
  readonly latency: boolean;
  /** Checks numbers and offsets of each message, by socket and topic. Without, positions are not known and resuming starts anew. */
  readonly check: boolean;
  /** The number of the first message of each topic that every socket must see; absent: whatever comes first. */
  readonly firstNumber?: number;
  /** A socket that the server closes, or that is cut, comes back with its positions, after the server's hint. */
  readonly comeBack: boolean;
}

export type HerdCommand =
  | { readonly do: 'start'; readonly settings: HerdSettings }
  /** Opens every socket that is not open. Answered when each is ready or has failed. */
  | { readonly id: number; readonly do: 'open'; readonly ramp: Ramp }
  /** Answered at once. Latencies are long, so they are sent when asked for only. */
  | { readonly id: number; readonly do: 'state'; readonly latencies: boolean }
  /** Measuring starts here: forgets latencies and reads so far. */
  | { readonly id: number; readonly do: 'begin' }
  /** Cuts this share (0 to 1) of the sockets that are ready, evenly spread, without a goodbye. `open` brings them back with their positions. */
  | { readonly id: number; readonly do: 'drop'; readonly share: number }
  /** Closes all sockets. Answered when all are closed. */
  | { readonly id: number; readonly do: 'close' };

export type HerdLine =
  | { readonly is: 'started' }
  | { readonly id: number; readonly state: HerdState }
  /** The process can do no more. */
  | { readonly is: 'failed'; readonly reason: string };

/** Counts since the start of the process, unless said otherwise. */
export interface HerdState {
  /** Sockets that are subscribed now. */
  readonly ready: number;
  /** Upgrades that are outstanding now, subscriptions included. */
  readonly opening: number;
  /** Sockets that wait for their turn, or for the time that the server gave them. */
  readonly waiting: number;
  /** Sockets that cannot be opened. */
  readonly failed: number;
  /** Upgrades that were answered 503 or 429. */
  readonly refused: number;
  /** Sockets that ended without being asked to, by close code; 1006: cut. */
  readonly closed: Readonly<Record<string, number>>;
  /** `msg` frames. */
  readonly messages: number;
  /** Direct messages; those with an id are acknowledged. */
  readonly directs: number;
  /** Reads of sockets since `begin`: with several messages each, the server wrote them together or this process was late. */
  readonly reads: number;
  /** `msg` frames since `begin`. */
  readonly messagesSinceBegin: number;
  /** Messages skipped and not seen later. */
  readonly lost: number;
  /** Messages that came again. */
  readonly doubled: number;
  /** Messages that came after a later one. */
  readonly disorder: number;
  /** Messages of a topic that the socket has not asked for, or that say nothing of themselves; checked sockets only. */
  readonly foreign: number;
  /** `gap` frames, subscriptions with `recovered: false`, `resync` frames. */
  readonly gaps: number;
  readonly notRecovered: number;
  readonly resyncs: number;
  /** Of this process, user and system, seconds. */
  readonly cpuSec: number;
  /** µs from when a message was due until it was read, since `begin`: an HDR histogram (`latencies.ts`); '' unless asked for. */
  readonly latencies: string;
  /** µs from a socket's connect until it was ready, the last try, since `begin`. */
  readonly handshakes: string;
  /** What went wrong, in words, the first few. */
  readonly faults: readonly string[];
}
