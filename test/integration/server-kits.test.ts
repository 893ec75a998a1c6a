import { describe, expect, it } from 'vitest';
import { natsServers, redisServer } from '../support/servers/binaries.js';
import { startNats, startNatsCluster } from '../support/servers/nats-kit.js';
import { startRedis, startRedisCluster } from '../support/servers/redis-kit.js';

function runs(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false; // There is no such process.
  }
}

describe('the servers that tests start', () => {
  it('finds the programs and their versions', () => {
    expect(redisServer().version).toMatch(/^\d+\.\d+\.\d+$/);
    for (const { version } of natsServers()) expect(version).toMatch(/^\d+\.\d+\.\d+$/);
  });

  it('starts, kills and restarts one Redis', async () => {
    const redis = await startRedis();
    const [node] = redis.nodes;
    await redis.kill(0);
    await expect(node!.call('PING')).rejects.toThrow();
    await redis.restart(0);
    expect(await node!.call('PING')).toBe('PONG');
    const { pid } = node!.process;
    expect(runs(pid)).toBe(true);
    await redis.stop();
    expect(runs(pid)).toBe(false);
  });

  it('starts a Redis Cluster in which a replica takes over, and heals', async () => {
    const redis = await startRedisCluster();
    try {
      expect(redis.urls).toHaveLength(6);
      await redis.kill(0);
      await redis.healthy();
      expect(await redis.nodes[3]!.call('INFO', 'replication')).toContain('role:master');
      await redis.restart(0);
      await redis.healthy();
      expect(await redis.nodes[0]!.call('INFO', 'replication')).toContain('role:slave');
    } finally {
      await redis.stop();
    }
    expect(redis.nodes.some((node) => runs(node.process.pid))).toBe(false);
  });

  for (const { version } of natsServers()) {
    it(`starts NATS ${version}, alone and as a cluster with JetStream`, async () => {
      const alone = await startNats({ version });
      expect(alone.version).toBe(version);
      await alone.restart(0);
      await alone.healthy();
      await alone.stop();
      const cluster = await startNatsCluster(3, { version });
      try {
        await cluster.kill(1);
        await cluster.healthy();
        await cluster.restart(1);
        await cluster.healthy();
      } finally {
        await cluster.stop();
      }
      expect(cluster.nodes.some((node) => runs(node.process.pid))).toBe(false);
    });
  }
});
