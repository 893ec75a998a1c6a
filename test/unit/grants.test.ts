import { describe, expect, it } from 'vitest';
import { readGrants, readTopics } from '../../node/grants.js';

describe('readGrants', () => {
  it.each<[string, string, boolean]>([
    ['item.>', 'item.1', true],
    ['item.>', 'item.1.price', true],
    ['item.>', 'item.>', true],
    ['item.>', 'item.*.price', true],
    ['item.>', 'item', false],
    ['item.*', 'item.1', true],
    ['item.*', 'item.1.price', false],
    ['>', 'anything.>', true],
    ['*', 'item', true],
    ['*', 'item.1', false],
    ['*.public.>', 'coupon.public.food', true],
    ['*.public.>', 'coupon.private.food', false],
    // These meet the grant but reach beyond it.
    ['item.1', 'item.*', false],
    ['item.*', 'item.>', false],
    ['item.*.price', 'item.>', false],
    ['item.1.>', 'item.*.price', false],
    ['coupon.food.*', 'coupon.*.kfc', false],
  ])('grant %s, asked for %s: %s', (grant, filter, allowed) => {
    expect(readGrants({ sub: [grant] }).canSubscribe(filter)).toBe(allowed);
  });

  it.each<[unknown]>([
    [undefined],
    [null],
    [7],
    ['>'],
    [['>']],
    [{}],
    [{ sub: '>', pub: '>', push: '*', admin: 'true' }],
    [{ sub: [7, null, ['>'], { '>': 1 }, 'a b', '', '>.a', 'a.>.b'], push: [7, 'a b'], admin: 1 }],
    [{ sub: { 0: '>', length: 1 } }],
    [Object.create({ sub: ['>'], pub: ['>'], push: ['*'], admin: true })],
  ])('grants nothing for %j', (can) => {
    const grants = readGrants(can);
    expect(grants.canSubscribe('a')).toBe(false);
    expect(grants.canSubscribe('a.b')).toBe(false);
    expect(grants.canPublish('a.b')).toBe(false);
    expect(grants.canPush('u')).toBe(false);
    expect(grants.admin).toBe(false);
  });

  it('keeps the rights apart', () => {
    expect(readGrants({ admin: true }).canSubscribe('a')).toBe(false);
    expect(readGrants({ admin: true }).canPush('u')).toBe(false);
    const subscriber = readGrants({ sub: ['>'] });
    expect([subscriber.canPublish('a'), subscriber.canPush('u'), subscriber.admin]).toEqual([
      false,
      false,
      false,
    ]);
    const publisher = readGrants({ pub: ['a.*', 'bad grant'] });
    expect([publisher.canPublish('a.b'), publisher.canPublish('b.a')]).toEqual([true, false]);
    expect(publisher.canSubscribe('a.b')).toBe(false);
    const pusher = readGrants({ push: ['u1'] });
    expect([pusher.canPush('u1'), pusher.canPush('u2'), pusher.canPush('*')]).toEqual([true, false, false]);
    expect(readGrants({ push: ['*'] }).canPush('u2')).toBe(true);
  });

  it('counts the topics claim as granted for subscribing only', () => {
    const grants = readGrants(undefined, readTopics(['item.*', 'coupon.food']));
    expect(grants.canSubscribe('item.1')).toBe(true);
    expect(grants.canSubscribe('coupon.food')).toBe(true);
    expect(grants.canSubscribe('coupon.drink')).toBe(false);
    expect(grants.canPublish('coupon.food')).toBe(false);
  });
});

describe('readTopics', () => {
  it('keeps the valid ones, each once', () => {
    expect(readTopics(['a.b', 'a.b', 'a.>', '>', '*.a', 'a b', 3, null])).toEqual(['a.b', 'a.>']);
    expect(readTopics('a.b')).toEqual([]);
    expect(readTopics(undefined)).toEqual([]);
  });
});
