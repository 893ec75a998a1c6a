/**
 * What the nodes of a cluster tell each other. Two engines: alone (a node without NATS) and NATS. It knows of nodes and opaque
 * commands, not of sessions: what a command does is the node's business (`node/peers.ts`).
 */
export interface Cluster {
  /**
   * Announces this node from now on, every two seconds, and takes commands for it.
   * @param describe read for each beacon
   * @throws BrokerError `unavailable`
   */
  start(describe: () => NodeLoad, handle: CommandHandler): Promise<void>;

  /** Calls back when a node was seen for the first time, went, or began to drain. */
  watch(onChange: () => void): void;

  /** All nodes that are seen alive, this one first. Empty before `start`. */
  nodes(): readonly NodeBeacon[];

  /**
   * Whether a node is known to be gone: no beacon for ten seconds. Nodes that were never seen count as alive during this node's
   * own first ten seconds, and as gone after that.
   */
  isDead(nodeId: string): boolean;

  /**
   * Sends a command to one node. Commands to the same node that are issued in one turn of the event loop travel together.
   * @returns the node's answer; undefined when that node does not exist any more
   * @throws BrokerError `unavailable` when it does not answer in time, or the cluster is out of reach; the failure that it answered
   */
  ask(nodeId: string, command: unknown): Promise<unknown>;

  /**
   * Sends a command to every living node, this one included, and gathers what answers within `timeoutMs`. Nodes that fail at it are not
   * in the answers: who needs all of them compares with `nodes()`.
   * @throws BrokerError `unavailable` when the cluster is out of reach
   */
  askAll(command: unknown, timeoutMs: number): Promise<readonly unknown[]>;

  /** Says goodbye: the others need not wait for ten seconds. */
  stop(): Promise<void>;
}

/** Answers a command of another node (or of this one). What it throws is answered as a failure. */
export type CommandHandler = (command: unknown) => Promise<unknown>;

/** What a node tells of itself. */
export interface NodeLoad {
  /** Where clients reach it. */
  readonly url: string;
  readonly connections: number;
  readonly channels: number;
  readonly version: string;
  readonly startedAt: number;
  readonly draining: boolean;
}

export interface NodeBeacon extends NodeLoad {
  /** One token of `[A-Za-z0-9_-]`. */
  readonly id: string;
  /** ms since the Unix epoch, on this node's clock, when it was last heard of. */
  readonly seenAt: number;
}

export const beaconMs = 2000;
export const deadAfterMs = 10_000;
