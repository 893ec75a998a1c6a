import type { NodeBeacon } from './cluster.js';

/** Ids of nodes that went, kept so that their sessions are not taken for those of nodes that were never seen. */
const goneMax = 1000;
/** What is believed of a bus: no cluster is larger. */
const nodesMax = 10_000;

/**
 * What a node knows of the others by their beacons. Time during which the node itself could hear nothing does not count against them:
 * after its own connection was cut, each has the full time again to be heard.
 */
export class NodeTable {
  readonly #selfId: string;
  readonly #deadAfterMs: number;
  readonly #now: () => number;
  readonly #nodes = new Map<string, NodeBeacon>();
  /** Oldest first. */
  readonly #gone = new Set<string>();
  #hearingSince: number;
  #deafSince: number | undefined;

  constructor(selfId: string, deadAfterMs: number, now: () => number) {
    this.#selfId = selfId;
    this.#deadAfterMs = deadAfterMs;
    this.#now = now;
    this.#hearingSince = now();
  }

  /** Takes a beacon. Answers whether it is news: a node that was not there, or one that began to drain. */
  seen(beacon: Omit<NodeBeacon, 'seenAt'>): 'new' | 'changed' | 'same' {
    const known = this.#nodes.get(beacon.id);
    if (known === undefined && this.#nodes.size >= nodesMax) return 'same';
    this.#gone.delete(beacon.id);
    this.#nodes.set(beacon.id, { ...beacon, seenAt: this.#now() });
    if (known === undefined) return 'new';
    return known.draining === beacon.draining ? 'same' : 'changed';
  }

  /** The node said goodbye, or nobody answers for it. Answers whether it was there. */
  left(nodeId: string): boolean {
    this.#gone.delete(nodeId);
    this.#gone.add(nodeId);
    for (const oldest of this.#gone) {
      if (this.#gone.size <= goneMax) break;
      this.#gone.delete(oldest);
    }
    return this.#nodes.delete(nodeId);
  }

  /** Lets go of those that have been silent for too long. Answers whether there were any. */
  expire(): boolean {
    const silent = [...this.#nodes.values()].filter(({ seenAt }) => this.#isSilent(seenAt));
    for (const { id } of silent) this.left(id);
    return silent.length > 0;
  }

  isDead(nodeId: string): boolean {
    if (nodeId === this.#selfId) return false;
    if (this.#gone.has(nodeId)) return true;
    return this.#isSilent(this.#nodes.get(nodeId)?.seenAt ?? this.#hearingSince);
  }

  /** The others, without those that are dead by now. */
  living(): NodeBeacon[] {
    return [...this.#nodes.values()].filter(({ seenAt }) => !this.#isSilent(seenAt));
  }

  /** From now on beacons cannot be heard, or can be heard again. */
  hears(hearing: boolean): void {
    if (!hearing) this.#deafSince ??= this.#now();
    else {
      this.#deafSince = undefined;
      this.#hearingSince = this.#now();
    }
  }

  #isSilent(seenAt: number): boolean {
    const until = this.#deafSince ?? this.#now();
    return until - Math.max(seenAt, this.#hearingSince) > this.#deadAfterMs;
  }
}
