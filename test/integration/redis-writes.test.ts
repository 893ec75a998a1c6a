import { setImmediate } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { RedisLink } from '../../broker/redis-link.js';
import { startRedis, type RedisServers } from '../support/servers/redis-kit.js';

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

const reads = async (): Promise<number> =>
  Number(/total_reads_processed:(\d+)/.exec(await raw.info('stats'))?.[1] ?? NaN);

it('commands of one turn reach Redis together, each with an answer of its own', async () => {
  const before = await reads();
  const count = 200;
  // As sockets that are ready at the same time have it: all in one turn, but each in a callback of its own.
  const answers = await Promise.allSettled(
    Array.from({ length: count }, async (_, i) => {
      await setImmediate();
      return i === 7 ? link.call('nonsense') : link.call('echo', `text-${i}`);
    }),
  );
  // A read takes what has arrived, 16 KiB at most; INFO itself is one too.
  expect((await reads()) - before).toBeLessThan(count / 10);
  for (const [i, answer] of answers.entries()) {
    if (i === 7) expect(answer.status).toBe('rejected');
    else expect(answer).toEqual({ status: 'fulfilled', value: `text-${i}` });
  }
});
