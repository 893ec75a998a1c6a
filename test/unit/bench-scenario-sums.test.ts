import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { sumStates, type FleetState } from '../../bench/fleet/fleet-state.js';
import { wasSent } from '../../bench/publish/push-load.js';
import { memoryFigures, rateAt } from '../../bench/scenarios/grow.js';
import { hostingsOf, perMessage } from '../../bench/scenarios/mixed.js';
import { queuedIn } from '../../bench/scenarios/redis-memory.js';
import { expectedCut, faultsOf } from '../../bench/scenarios/resume.js';
import { groupsOf } from '../../bench/scenarios/sessions.js';
import { idealSeconds } from '../../bench/scenarios/storm.js';
import { untilState, untilSteady } from '../../bench/scenarios/waiting.js';
import { hostsOf, interestsOf, seededRandom, zipf } from '../../bench/scenarios/zipf.js';
import { countsBetween, jetStreamKind, listenToNats } from '../../bench/servers/nats-listener.js';
import { commandsIn, dataBytesIn } from '../../bench/servers/redis-info.js';

const state = (change: Partial<FleetState>): FleetState => ({ ...sumStates([]), ...change });

describe('who wants what', () => {
  it('is the same for the same seed, each topic once, and has popular topics', () => {
    const topics = Array.from({ length: 50 }, (_, i) => `item.${i}`);
    const options = { users: 2000, topics, topicsPerUser: 4, exponent: 1, seed: 3 };
    const interests = interestsOf(options);
    expect(interestsOf(options)).toEqual(interests);
    expect(interestsOf({ ...options, seed: 4 })).not.toEqual(interests);
    for (const own of interests) expect(new Set(own).size).toBe(4);
    const wanted = (topic: string): number => interests.filter((own) => own.includes(topic)).length;
    expect(wanted('item.0')).toBeGreaterThan(3 * wanted('item.20'));
  });

  it('gives everything to those who want as many topics as there are, or more', () => {
    const options = { users: 3, topics: ['a', 'b', 'c'], exponent: 5, seed: 1 };
    for (const own of interestsOf({ ...options, topicsPerUser: 9 })) {
      expect(own.sort()).toEqual(['a', 'b', 'c']);
    }
  });

  it('follows the law of Zipf, to the edges', () => {
    // 1 : 1/2 : 1/3, which are shares of 6/11, 3/11 and 2/11.
    const at = (share: number): number => zipf(3, 1, () => share)();
    expect([0, 0.54, 0.55, 0.81, 0.82, 0.999].map(at)).toEqual([0, 0, 1, 1, 2, 2]);
    expect([0, 0.33, 0.34, 0.99].map((share) => zipf(3, 0, () => share)())).toEqual([0, 0, 1, 2]);
    const random = seededRandom(1);
    const some = Array.from({ length: 1000 }, random);
    expect(Math.min(...some)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...some)).toBeLessThan(1);
  });

  it('says how many nodes host a topic, and how often messages are sent to one', () => {
    const hosts = hostsOf([['a', 'b'], ['a'], ['b'], ['a', 'c']], 2);
    expect(hosts).toEqual(new Map(Object.entries({ a: 2, b: 1, c: 1 })));
    // a, b, nobody, a, b: 2 + 1 + 0 + 2 + 1.
    expect(hostingsOf(5, ['a', 'b', 'nobody'], hosts)).toBe(6);
  });
});

describe('a message of a mixed run', () => {
  it('costs what was counted beyond the quiet time', () => {
    const quiet = { in: 10, out: 20, redis: 5 };
    const busy = { in: 120, out: 340, redis: 8 };
    expect(perMessage({ quiet, busy, times: 2, messages: 100, hostings: 150 })).toEqual({
      natsInPerMessage: 1,
      natsOutPerMessage: 2,
      redisCommandsPerMessage: 0,
    });
  });
});

describe('a resumption', () => {
  const wanted = { sockets: 10, due: 100, cut: 3 };
  const fine = state({ ready: 10, messages: 100, closed: { 1006: 3 } });

  it('is fine when exactly the sessions of one node were cut and nobody missed or repeated anything', () => {
    expect(expectedCut(10, 3)).toBe(3);
    expect(groupsOf(['a', 'b', 'c'], 2)).toEqual([
      ['a', 'b'],
      ['b', 'c'],
      ['c', 'a'],
    ]);
    expect(faultsOf(fine, wanted)).toEqual([]);
  });

  it.each<[string, Partial<FleetState>]>([
    ['one is not back', { ready: 9 }],
    ['one delivery is missing', { messages: 99 }],
    ['one is too many', { messages: 101 }],
    ['others were cut too', { closed: { 1006: 4 } }],
    ['one was closed for another reason', { closed: { 1006: 3, 4004: 1 } }],
    ['one came twice', { doubled: 1 }],
    ['a position was not recovered', { notRecovered: 1 }],
  ])('has failed when %s', (_name, change) => {
    expect(faultsOf({ ...fine, ...change }, wanted)).toHaveLength(1);
  });
});

describe('what servers say of themselves', () => {
  it('is the memory of Redis without buffers, of either generation', () => {
    const used = 'used_memory:1000\r\nused_memory_rss:9999\r\nmem_clients_normal:100\r\n';
    expect(dataBytesIn(`${used}mem_total_replication_buffers:200\r\nmem_replication_backlog:150\r\n`)).toBe(
      700,
    );
    expect(dataBytesIn(`${used}mem_replication_backlog:150\r\nmem_clients_slaves:50\r\n`)).toBe(700);
    expect(() => dataBytesIn('nothing')).toThrow('how much memory');
  });

  it('is the commands of clients', () => {
    const info = [
      'cmdstat_evalsha:calls=7,usec=1,usec_per_call=1.0',
      'cmdstat_cluster|slots:calls=100,usec=1',
      'cmdstat_info:calls=9,usec=1',
      'cmdstat_get:calls=2,usec=1',
    ];
    expect(commandsIn(info.join('\r\n'))).toBe(9);
  });

  it('is the kinds of requests to JetStream, also when they come in pieces', async () => {
    const server = createServer((socket: Socket) => {
      socket.setNoDelay(true).write('INFO {}\r\n');
      let asked = '';
      socket.on('data', (text) => {
        asked += text.toString('latin1');
        if (!asked.includes('PING\r\n')) return;
        asked = asked.replace('PING\r\n', '');
        // A payload that looks like a message, a message with headers, a split in the middle of a line.
        socket.write(
          'MSG $JS.API.STREAM.INFO.tc_item 1 _INBOX.x 11\r\nMSG a 1 0\r\n\r\nHMSG $JS.API.CONSUMER.CREATE.s 1 ',
        );
        setImmediate(() => socket.write('12 14\r\nNATS/1.0\r\n\r\nhi\r\nPONG\r\n'));
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const listener = await listenToNats(`nats://127.0.0.1:${port}`, '$JS.API.>', jetStreamKind);
    try {
      const first = new Map(listener.counts);
      expect(first).toEqual(new Map(Object.entries({ 'STREAM.INFO': 1, 'CONSUMER.CREATE': 1 })));
      await listener.flush();
      expect(countsBetween(first, listener.counts)).toEqual(first);
      expect(countsBetween(first, first).size).toBe(0);
    } finally {
      listener.close();
      server.close();
    }
  });

  it('is whether a push was sent or queued', () => {
    expect(wasSent(200, '{"id":"x","status":"sent","sessions":1}')).toBe(true);
    expect(wasSent(200, '{"id":"x","status":"queued","sessions":0}')).toBe(false);
    expect(wasSent(503, '"status":"sent"')).toBe(false);
    expect(queuedIn(200, '{"sent":1,"queued":7,"failed":[]}')).toBe(7);
    expect(() => queuedIn(409, '{"code":"queue_full"}')).toThrow('409');
  });
});

describe('rates', () => {
  it('are those of the sizes, and a storm cannot be over sooner than they let it', () => {
    expect([1000, 19_000, 1_000_000].map((sockets) => rateAt(sockets, 40_000))).toEqual([40, 2, 1]);
    // One second's worth is let in at once.
    expect(idealSeconds(10_000, 2000)).toBe(4);
    expect(idealSeconds(100, 2000)).toBe(0);
  });
});

describe('memory that grows', () => {
  it('is counted from the first step on', () => {
    const steps = [
      { sessions: 1000, use: { rss: 95e6, rssCollected: 80e6, heap: 20e6 } },
      { sessions: 5000, use: { rss: 99e6, rssCollected: 88e6, heap: 24e6 } },
      { sessions: 11_000, use: { rss: 110e6, rssCollected: 110e6, heap: 32e6 } },
    ];
    expect(memoryFigures(steps).map(({ figures }) => figures.rssBytesPerSession)).toEqual([
      undefined,
      2000,
      3000,
    ]);
    expect(memoryFigures(steps)[2]?.figures).toMatchObject({
      sockets: 11_000,
      serverRssMb: 110,
      heapBytesPerSession: 1200,
    });
  });
});

describe('waiting until a value is steady', () => {
  const readsOf = (values: readonly number[]): { read: () => number; count: () => number } => {
    let reads = 0;
    return { read: () => values[Math.min(reads++, values.length - 1)] ?? 0, count: () => reads };
  };

  it('takes no notice of less than a two-hundredth, and starts anew with more', async () => {
    const { count, read } = readsOf([1000, 1001, 1100, 1101, 1103, 1102, 900]);
    expect(await untilSteady(read, 0.003, undefined, { stepSec: 0.001 })).toBe(1102);
    expect(count()).toBe(6);
  });

  it('fails when the value does not come to rest', async () => {
    let value = 1;
    const rising = untilSteady(() => (value *= 2), 0.002, undefined, { stepSec: 0.001, secondsMax: 0.01 });
    await expect(rising).rejects.toThrow('not steady');
  });
});

describe('waiting for a state', () => {
  it('ends with the state, or with the time', async () => {
    let messages = 0;
    const fleet = { state: async () => state({ messages: ++messages }) };
    expect((await untilState(fleet, (one) => one.messages >= 3, 60)).messages).toBe(3);
    expect((await untilState(fleet, () => false, 0)).messages).toBe(4);
  });
});
