import { describe, expect, it } from 'vitest';
import { machineMemory } from '../../bench/result/memory.js';
import { bytesFor, costs, nodesFor, shortfall } from '../../bench/scenarios/million-needs.js';

describe('what so many sockets need', () => {
  const wanted = { sockets: 1_000_000, perNode: 19_500, redis: 'cluster' } as const;
  const limits = { availableBytes: 24e9, descriptors: 20_000, ports: 28_232 };
  const perSocket =
    costs.kernelPerSocket + costs.nodePerSocket + costs.clientPerSocket + 2 * costs.redisPerSocket;

  it('adds up by socket and by node', () => {
    expect(nodesFor(wanted)).toBe(52);
    const fixed = 52 * (costs.perNode + costs.perHerd) + costs.servers + costs.reserve;
    expect(bytesFor(wanted)).toBe(1_000_000 * perSocket + fixed);
    expect(bytesFor(wanted) - bytesFor({ ...wanted, redis: 'one' })).toBe(1_000_000 * costs.redisPerSocket);
    expect(shortfall(wanted, limits)).toBeUndefined();
  });

  it('says how many would fit, and they do', () => {
    const small = { ...limits, availableBytes: 8e9 };
    const text = shortfall(wanted, small) ?? '';
    expect(text).toMatch(/^needs \d+\.\d GB, 8\.0 are available: --sockets \d+000$/);
    const sockets = Number(/--sockets (\d+)/.exec(text)?.[1]);
    expect(shortfall({ ...wanted, sockets }, small)).toBeUndefined();
    expect(shortfall({ ...wanted, sockets: sockets + 2000 }, small)).toContain('GB');
  });

  it('knows descriptors and ports', () => {
    expect(shortfall({ ...wanted, perNode: 19_701 }, limits)).toContain('--per-node 19700 at most');
    // However many nodes there are: the sockets of a process all go to one of them.
    for (const sockets of [1000, 1_000_000]) {
      expect(shortfall({ ...wanted, sockets }, { ...limits, ports: 100 })).toContain('--per-node 200 at');
    }
    expect(shortfall(wanted, { ...limits, ports: 9750 })).toBeUndefined();
  });
});

describe('the memory of the machine', () => {
  const meminfo = [
    'MemTotal:       24684084 kB',
    'MemAvailable:    1000000 kB',
    'KernelStack:          10 kB',
    'PageTables:           20 kB',
    'SUnreclaim:       100000 kB',
  ].join('\n');

  it('does not count what open sockets hold as available', () => {
    const none = machineMemory(meminfo, 'sockets: used 0\nTCP: inuse 0 orphan 0');
    expect(none).toEqual({ available: 1_024_000_000, kernel: 100_030 * 1024, sockets: 0 });
    const many = machineMemory(meminfo, 'sockets: used 600000\nTCP: inuse 600000 orphan 0');
    const hidden = none.available - many.available;
    expect(hidden / 600_000).toBeCloseTo(1035, 0);
    expect(many.kernel - none.kernel).toBe(hidden);
  });

  it('is not guessed', () => {
    expect(() => machineMemory('MemTotal: 1 kB', 'sockets: used 0')).toThrow('proc(5)');
  });
});
