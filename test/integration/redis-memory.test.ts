import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RedisLink } from '../../broker/redis-link.js';
import { createRedisUsers } from '../../broker/redis-users.js';
import type { SessionRecord } from '../../broker/sessions.js';
import { shortText } from '../../node/short-text.js';
import { startRedis, type RedisServers } from '../support/servers/redis-kit.js';

describe('memory of Redis', () => {
  let servers: RedisServers;
  let link: RedisLink;
  let raw: Redis;

  beforeAll(async () => {
    servers = await startRedis();
    link = new RedisLink({ urls: servers.urls });
    await link.start();
    raw = new Redis(servers.urls[0]!);
  });

  afterAll(async () => {
    raw.disconnect();
    await link.close();
    await servers.stop();
  });

  const usedBytes = async (): Promise<number> =>
    Number(/used_memory:(\d+)/.exec(await raw.info('memory'))?.[1] ?? NaN);

  // Where the bytes go is in docs/operations.md. These are the steps of 16 B in which the Redis of Debian hands out memory; one that is
  // built with its own jemalloc stays below 320 B with all of them.
  it.each([
    ['without a name', undefined, 320],
    ['that calls its device by 6 letters', 'tablet', 330],
    ['that calls its device by 12 letters', 'mini-program', 345],
  ])(
    'keeps the record of a user with one session compact, %s',
    async (title, device, bytesMax) => {
      const count = 200_000;
      await raw.flushall();
      const { sessions } = createRedisUsers({ link, prefix: 'tc' });
      const before = await usedBytes();
      for (let i = 0; i < count; i += 5000) {
        await sessions.refresh(
          Array.from({ length: 5000 }, (_, j) => {
            return aDayOld(`u${500_000 + i + j}`, `edge-1-1b2C3.${shortText(i + j)}`, device);
          }),
        );
      }
      const perUser = ((await usedBytes()) - before) / count;
      const encoding = await raw.object('ENCODING', 'tc:session:{u500000}');
      await raw.flushall();
      console.log(`Redis memory of a user online with one session ${title}: ${perUser.toFixed(0)} B`);
      expect(encoding).toBe('listpack');
      expect(perUser).toBeLessThanOrEqual(bytesMax);
    },
    180_000,
  );

  // A message of more than 64 bytes is longer than `hash-max-listpack-value` of the default lets a compact hash hold.
  it.each([
    ['64', 1, 650],
    ['256', 1, 500],
    ['256', 10, 260],
  ])(
    'keeps what waits for a user compact, with hash-max-listpack-value %s and %i messages',
    async (listpackMax, messages, bytesMax) => {
      const count = 20_000;
      await raw.flushall();
      await raw.config('SET', 'hash-max-listpack-value', listpackMax);
      const text = JSON.stringify('x'.repeat(98));
      const { queue } = createRedisUsers({ link, prefix: 'tc' });
      const before = await usedBytes();
      for (let i = 0; i < count; i += 1000) {
        const names = Array.from({ length: 1000 }, (_, j) => `u${500_000 + Math.floor((i + j) / messages)}`);
        await Promise.all(names.map((name) => queue.push(name, { format: 'json', text }, 3600)));
      }
      const perMessage = ((await usedBytes()) - before) / count;
      await raw.config('SET', 'hash-max-listpack-value', '64');
      await raw.flushall();
      console.log(
        `Redis memory of a push of 100 B that waits, ${messages} a user, hash-max-listpack-value ${listpackMax}: ${perMessage.toFixed(0)} B`,
      );
      expect(perMessage).toBeLessThanOrEqual(bytesMax);
    },
    60_000,
  );
});

/** As it is written at a refresh. */
function aDayOld(userId: string, id: string, device: string | undefined): SessionRecord {
  const active = Date.now();
  return { userId, id, login: active - 86_400_000, active, ...(device === undefined ? {} : { device }) };
}
