import { Cluster } from 'ioredis';
import type { RedisClient } from './redis-client.js';

/** What is used of a connection to a server. */
interface Corkable {
  cork(): void;
  uncork(): void;
}

/**
 * Joins the commands of one turn of the event loop into one write a connection. A write of its own for each command is the largest part of what a
 * handshake costs, for the node and for Redis, which reads them one by one then. Unlike ioredis' pipelines it leaves every command on its own: each is
 * redirected, times out and fails by itself.
 */
export class RedisWrites {
  #held: readonly Corkable[] | undefined;

  /** To be called before commands are given to the client; they leave at the end of this turn. */
  hold(client: RedisClient): void {
    if (this.#held !== undefined) return;
    const nodes = client instanceof Cluster ? client.nodes('master') : [client];
    this.#held = nodes.flatMap((node) => {
      // Absent until it has connected.
      const stream = node.stream as typeof node.stream | undefined;
      return stream ?? [];
    });
    for (const stream of this.#held) stream.cork();
    setImmediate(() => this.#release());
  }

  #release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const stream of held) stream.uncork();
  }
}
