import { describe, expect, it } from 'vitest';
import { createAdmission } from '../../node/admission.js';
import { createFrameLimiter } from '../../node/rate.js';

function clocked(rate: number, random = 0) {
  const state = { ms: 1000, random };
  const admission = createAdmission(rate, { now: () => state.ms, random: () => state.random });
  const takeAll = (): number => {
    let taken = 0;
    while (admission.take()) taken++;
    return taken;
  };
  return { state, admission, takeAll };
}

describe('admission', () => {
  it('lets in one second of the rate at once, then the rate', () => {
    const { state, takeAll } = clocked(100);
    expect(takeAll()).toBe(100);
    state.ms += 250;
    expect(takeAll()).toBe(25);
    state.ms += 3_600_000;
    expect(takeAll()).toBe(100);
  });

  it('peeks without taking', () => {
    const { state, admission, takeAll } = clocked(1);
    expect([admission.peek(), admission.peek()]).toEqual([true, true]);
    expect(takeAll()).toBe(1);
    expect(admission.peek()).toBe(false);
    state.ms += 999;
    expect(admission.peek()).toBe(false);
    state.ms += 1;
    expect(admission.peek()).toBe(true);
  });

  it('changes its rate, and keeps no more than the new burst', () => {
    const { state, admission, takeAll } = clocked(100);
    admission.setRate(10);
    expect(takeAll()).toBe(10);
    state.ms += 500;
    admission.setRate(1000);
    expect(takeAll()).toBe(5);
    state.ms += 500;
    expect(takeAll()).toBe(500);
  });

  it('lets somebody in at a rate below one a second', () => {
    const { state, admission, takeAll } = clocked(0.5);
    expect(takeAll()).toBe(1);
    state.ms += 1999;
    expect(admission.take()).toBe(false);
    state.ms += 1;
    expect(admission.take()).toBe(true);
  });

  it('earns nothing from a clock that steps back', () => {
    const { state, takeAll } = clocked(10);
    takeAll();
    state.ms -= 5000;
    expect(takeAll()).toBe(0);
  });

  it('tells those turned away when their turn is, a quarter later at most', () => {
    const { state, admission } = clocked(10);
    // The first would be due in a tenth of a second.
    expect(admission.retryAfterSec(true)).toBe(1);
    for (let i = 1; i < 99; i++) admission.retryAfterSec(true);
    expect(admission.retryAfterSec(true)).toBe(11);
    state.random = 0.999;
    expect(admission.retryAfterSec(true)).toBe(13);
    state.ms += 5000;
    state.random = 0;
    expect(admission.retryAfterSec(true)).toBe(6);
  });

  it('spreads a few over some seconds, and very many over a minute', () => {
    const { state, admission } = clocked(10, 0.999);
    for (let i = 0; i < 20; i++) admission.retryAfterSec(true);
    expect(admission.retryAfterSec(true)).toBe(4);
    for (let i = 0; i < 10_000; i++) {
      expect(admission.retryAfterSec(true)).toBeLessThanOrEqual(60);
    }
    expect(admission.retryAfterSec(true)).toBe(60);
    state.random = 0;
    expect(admission.retryAfterSec(true)).toBe(1);
    state.random = 0.999;
    state.ms += 3_600_000;
    expect(admission.retryAfterSec(true)).toBe(2);
  });

  it('does not count one that asks why it was turned away as one more', () => {
    const { admission } = clocked(10);
    for (let i = 0; i < 100; i++) admission.retryAfterSec(true);
    for (let i = 0; i < 10_000; i++) expect(admission.retryAfterSec(false)).toBe(11);
    expect(admission.retryAfterSec(true)).toBe(11);
  });
});

describe('the frame limiter', () => {
  function allowed(count: number, state: { frameDueMs: number }, nowMs: number): number {
    const limiter = createFrameLimiter(100, 200);
    let passed = 0;
    for (let i = 0; i < count; i++) if (limiter.allow(state, nowMs)) passed++;
    return passed;
  }

  it('lets a burst pass, then the sustained rate, and refills when quiet', () => {
    const state = { frameDueMs: 0 };
    expect(allowed(1000, state, 50_000)).toBe(200);
    expect(allowed(1000, state, 50_100)).toBe(10);
    expect(allowed(1000, state, 51_100)).toBe(100);
    expect(allowed(1000, state, 90_000)).toBe(200);
  });

  it('never holds back who keeps to the rate', () => {
    const limiter = createFrameLimiter(3, 1);
    const state = { frameDueMs: 0 };
    for (let i = 0; i < 1000; i++) expect(limiter.allow(state, 1e6 + (i * 1000) / 3)).toBe(true);
  });
});
