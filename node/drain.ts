import type { Connections } from './connections.js';

/** Every so often a slice of the connections is moved away; a small node is empty after the first slice. */
const sliceMs = 100;
const sliceMin = 100;

/**
 * Moves all clients away before the node stops (G12): each is told `bye` with a time to come back after that differs from the others', so
 * the nodes that remain are not met by a storm. Resolves when every connection has closed.
 * @param drainSec over how long the closes are spread
 */
export async function drainConnections(connections: Connections, drainSec: number): Promise<void> {
  const slices = Math.max(1, Math.floor((drainSec * 1000) / sliceMs));
  const perSlice = Math.max(sliceMin, Math.ceil(connections.size / slices));
  // Those who come meanwhile are refused, so this ends.
  while (connections.size > 0) {
    let left = perSlice;
    for (const session of [...connections.all()].slice(0, perSlice)) {
      session.close('draining', 'the node is stopping', Math.floor(Math.random() * 1000 * drainSec));
      left--;
    }
    if (left > 0 || connections.size === 0) break;
    await new Promise((resolve) => setTimeout(resolve, sliceMs));
  }
  await connections.settled();
}
