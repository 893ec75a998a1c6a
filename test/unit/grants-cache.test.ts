import { describe, expect, it } from 'vitest';
import { GrantsCache } from '../../node/grants-cache.js';

describe('GrantsCache', () => {
  it('gives the same object for claims that say the same', () => {
    const cache = new GrantsCache();
    const first = cache.read({ sub: ['item.*'], push: ['bo'] }, []);
    expect(cache.read({ sub: ['item.*'], push: ['bo'] }, [])).toBe(first);
    expect(first.canSubscribe('item.1')).toBe(true);
    expect(first.canPush('bo')).toBe(true);
  });

  it('never gives the rights of one claim to another', () => {
    const cache = new GrantsCache();
    cache.read({ sub: ['item.*'], admin: true }, []);
    for (const can of [{ sub: ['item'] }, { pub: ['item.*'] }, {}, undefined, null, '{"sub":["item.*"]}']) {
      const grants = cache.read(can, []);
      expect(grants.canSubscribe('item.1')).toBe(false);
      expect(grants.admin).toBe(false);
    }
  });

  it('does not share topics that a token brings along', () => {
    const cache = new GrantsCache();
    const can = { sub: ['item.*'] };
    expect(cache.read(can, ['coupon.ann']).canSubscribe('coupon.ann')).toBe(true);
    expect(cache.read(can, ['coupon.bo']).canSubscribe('coupon.ann')).toBe(false);
    expect(cache.read(can, []).canSubscribe('coupon.ann')).toBe(false);
  });

  it('does not grow with claims that are all different, or long', () => {
    const cache = new GrantsCache();
    const claim = (i: number) => ({ sub: [`item.${i}`] });
    const first = cache.read(claim(0), []);
    for (let i = 1; i < 2000; i++) expect(cache.read(claim(i), []).canSubscribe(`item.${i}`)).toBe(true);
    expect(cache.read(claim(0), [])).not.toBe(first);
    const long = {
      sub: [`item.${'x'.repeat(120)}`, ...Array.from({ length: 100 }, (_, i) => `item.long-${i}`)],
    };
    expect(cache.read(long, [])).not.toBe(cache.read(long, []));
  });
});
