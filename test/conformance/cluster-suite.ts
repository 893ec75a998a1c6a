import { afterEach, describe, expect, it } from 'vitest';
import type { Cluster, CommandHandler, NodeLoad } from '../../broker/cluster.js';
import { BrokerError } from '../../broker/errors.js';

export const load: NodeLoad = {
  url: 'http://127.0.0.1:1',
  connections: 3,
  channels: 2,
  version: '1.2.3',
  startedAt: 1_700_000_000_000,
  draining: false,
};

/** Answers what it was told, and fails when it is told to. */
export const echo: CommandHandler = async (command) => {
  if (command === 'fail') throw new BrokerError('queue_full', 'no room');
  if (command === 'break') throw new TypeError('a fault with a secret');
  return command === 'nothing' ? null : { told: command };
};

export interface ClusterKit {
  readonly cluster: Cluster;
  dispose(): Promise<void>;
}

/** What holds for a node whatever its cluster, itself the only member. */
export function clusterConformance(name: string, make: (nodeId: string) => Promise<ClusterKit>): void {
  describe(`a cluster of one, ${name}`, () => {
    let kit: ClusterKit;
    const started = async (): Promise<Cluster> => {
      kit = await make('one-1');
      await kit.cluster.start(() => load, echo);
      return kit.cluster;
    };
    afterEach(() => kit.dispose());

    it('has nobody in it before it starts, and then the node as it describes itself', async () => {
      kit = await make('one-1');
      expect(kit.cluster.nodes()).toEqual([]);
      const before = Date.now();
      await kit.cluster.start(() => load, echo);
      const [self, ...others] = kit.cluster.nodes();
      expect(self).toEqual({ ...load, id: 'one-1', seenAt: expect.any(Number) as number });
      expect(self!.seenAt).toBeGreaterThanOrEqual(before);
      expect(others).toEqual([]);
      expect(kit.cluster.isDead('one-1')).toBe(false);
    });

    it('hands its own commands to its own handler', async () => {
      const cluster = await started();
      expect(await cluster.ask('one-1', { a: [1] })).toEqual({ told: { a: [1] } });
      expect(await cluster.ask('one-1', 'nothing')).toBeNull();
      await expect(cluster.ask('one-1', 'fail')).rejects.toMatchObject({ code: 'queue_full' });
      expect(await cluster.askAll('x', 1000)).toEqual([{ told: 'x' }]);
    });

    it('leaves failures out of what all answer', async () => {
      const cluster = await started();
      expect(await cluster.askAll('fail', 50)).toEqual([]);
    });

    it.each(['two-2', '', '*', '>', 'a.b', 'one-1.x'])('finds nobody behind the id %j', async (id) => {
      const cluster = await started();
      expect(await cluster.ask(id, 'x')).toBeUndefined();
      expect(cluster.isDead(id)).toBe(true);
    });

    it('takes no commands when it has stopped', async () => {
      const cluster = await started();
      await cluster.stop();
      await expect(cluster.ask('one-1', 'x')).rejects.toMatchObject({ code: 'unavailable' });
      await cluster.stop();
    });
  });
}
