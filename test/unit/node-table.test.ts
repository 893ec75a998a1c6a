import { describe, expect, it } from 'vitest';
import { NodeTable } from '../../broker/node-table.js';
import { createTestClock } from '../support/test-clock.js';

const load = { url: '', connections: 0, channels: 0, version: '1', startedAt: 0, draining: false };

function table() {
  const clock = createTestClock();
  return { clock, nodes: new NodeTable('self', 10_000, clock.now) };
}

const ids = (nodes: NodeTable): string[] => nodes.living().map(({ id }) => id);

describe('what a node knows of others', () => {
  it('is news once, and again when they drain', () => {
    const { nodes } = table();
    expect(nodes.seen({ ...load, id: 'a' })).toBe('new');
    expect(nodes.seen({ ...load, id: 'a', connections: 5 })).toBe('same');
    expect(nodes.seen({ ...load, id: 'a', draining: true })).toBe('changed');
    expect(nodes.living()).toMatchObject([{ id: 'a', draining: true }]);
  });

  it('ends ten seconds after their last beacon', () => {
    const { clock, nodes } = table();
    nodes.seen({ ...load, id: 'a' });
    clock.advance(9000);
    nodes.seen({ ...load, id: 'b' });
    clock.advance(1000);
    expect([nodes.isDead('a'), nodes.expire(), ids(nodes)]).toEqual([false, false, ['a', 'b']]);
    clock.advance(1);
    expect([nodes.isDead('a'), nodes.isDead('b'), ids(nodes)]).toEqual([true, false, ['b']]);
    expect([nodes.expire(), nodes.expire()]).toEqual([true, false]);
    expect(nodes.isDead('a')).toBe(true);
  });

  it('counts nodes that were never seen as alive for the first ten seconds only', () => {
    const { clock, nodes } = table();
    clock.advance(10_000);
    expect(nodes.isDead('x')).toBe(false);
    clock.advance(1);
    expect([nodes.isDead('x'), nodes.isDead('self')]).toEqual([true, false]);
  });

  it('believes a goodbye at once, and a beacon after it again', () => {
    const { nodes } = table();
    nodes.seen({ ...load, id: 'a' });
    expect([nodes.left('a'), nodes.left('a'), nodes.left('never seen')]).toEqual([true, false, false]);
    expect([nodes.isDead('a'), nodes.isDead('never seen'), ids(nodes)]).toEqual([true, true, []]);
    expect(nodes.seen({ ...load, id: 'a' })).toBe('new');
    expect(nodes.isDead('a')).toBe(false);
  });

  it('does not hold against them that it could not hear', () => {
    const { clock, nodes } = table();
    nodes.seen({ ...load, id: 'a' });
    clock.advance(5000);
    nodes.hears(false);
    clock.advance(3_600_000);
    nodes.hears(false);
    expect([nodes.isDead('a'), nodes.expire()]).toEqual([false, false]);
    nodes.hears(true);
    clock.advance(10_000);
    expect(nodes.isDead('a')).toBe(false);
    clock.advance(1);
    expect([nodes.isDead('a'), nodes.expire()]).toEqual([true, true]);
  });

  it('is bounded, whatever comes over the bus', () => {
    const { nodes } = table();
    for (let i = 0; i < 20_000; i++) nodes.seen({ ...load, id: `a${i}` });
    expect(nodes.living()).toHaveLength(10_000);
    // Gone ones are remembered, the newest thousand of them.
    for (let i = 0; i < 5000; i++) nodes.left(`b${i}`);
    expect([nodes.isDead('b4999'), nodes.isDead('b4000'), nodes.isDead('b3999')]).toEqual([
      true,
      true,
      false,
    ]);
  });
});
