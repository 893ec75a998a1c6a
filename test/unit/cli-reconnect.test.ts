import { describe, expect, it } from 'vitest';
import { defaultBackoff, fullJitter, parseRetryAfter } from '../../client/backoff.js';
import { batches } from '../../client/handshake.js';
import { queryOf, verdictOf } from '../../node/cli/subscriber.js';

const url = new URL('http://127.0.0.1:8080');

describe('full jitter', () => {
  it('spreads from zero to a bound that doubles up to its maximum', () => {
    const almostOne = (): number => 0.999999;
    for (let attempt = 0; attempt < 2000; attempt++) {
      const bound = Math.min(30_000, 500 * 2 ** attempt);
      expect(fullJitter(attempt, defaultBackoff, () => 0)).toBe(0);
      expect(fullJitter(attempt, defaultBackoff, almostOne)).toBe(bound - 1);
    }
    expect(fullJitter(2, defaultBackoff, () => 0.5)).toBe(1000);
  });
});

describe('Retry-After', () => {
  it('reads seconds and dates, and nothing else', () => {
    const now = Date.parse('Tue, 01 Jan 2030 00:00:00 GMT');
    expect(parseRetryAfter('7', now)).toBe(7000);
    expect(parseRetryAfter('Tue, 01 Jan 2030 00:00:09 GMT', now)).toBe(9000);
    expect(parseRetryAfter('Mon, 31 Dec 2029 00:00:00 GMT', now)).toBe(0);
    expect(parseRetryAfter('999999999', now)).toBe(3_600_000);
    for (const text of [undefined, null, '', ' ', 'soon', '-1x']) {
      expect(parseRetryAfter(text, now)).toBeUndefined();
    }
  });
});

describe('what follows the end of a connection', () => {
  const verdict = (end: Omit<Parameters<typeof verdictOf>[0], 'reason'>, everWelcomed = true) =>
    verdictOf({ reason: 'because', ...end }, url, everWelcomed);

  it('is final when the token or the client is refused, even later on', () => {
    expect(verdict({ status: 401 })).toMatchObject({ fatal: expect.stringContaining('token') as string });
    expect(verdict({ status: 403 })).toHaveProperty('fatal');
    expect(verdict({ status: 404 })).toHaveProperty('fatal');
  });

  it('is a wait of at least Retry-After when the server is busy, even at first', () => {
    expect(verdict({ status: 503, retryMs: 4000 }, false)).toEqual({ waitMs: 4000 });
    expect(verdict({ status: 429, retryMs: 4000 }, false)).toEqual({ waitMs: 4000 });
    expect(verdict({ status: 502 }, false)).toEqual({ waitMs: 0 });
  });

  it('is final for a node that was never reached, and a wait for one that was', () => {
    expect(verdict({ code: 1006 }, false)).toEqual({
      fatal: 'cannot connect to http://127.0.0.1:8080: because',
    });
    expect(verdict({ code: 1006 })).toEqual({ waitMs: 0 });
  });

  it('follows the range of the close code', () => {
    for (const code of [4500, 4503, 4999]) expect(verdict({ code })).toHaveProperty('fatal');
    for (const code of [1000, 1001, 4000, 4499, 5000]) expect(verdict({ code })).toEqual({ waitMs: 0 });
    expect(verdict({ code: 4000, retryMs: 1500 })).toEqual({ waitMs: 1500 });
  });
});

describe('how topics are asked for', () => {
  it('puts topics with positions into the query', () => {
    const requests = [
      { topic: 'item.1', epoch: 'k3f9', offset: 1037 },
      { topic: 'price.>' },
      { topic: 'a.b=c' },
    ];
    const query = queryOf(requests) ?? '';
    expect(query).toBe('item.1@k3f9:1037,price.%3E,a.b%3Dc');
    expect(new URLSearchParams(`topics=${query}`).get('topics')).toBe('item.1@k3f9:1037,price.>,a.b=c');
  });

  it('keeps long lists and snapshots for a frame', () => {
    const many = Array.from({ length: 512 }, (_, i) => ({ topic: `item.${'x'.repeat(40)}${i}` }));
    expect(queryOf(many)).toBeUndefined();
    // A token travels in the same header block.
    const some = many.slice(0, 200);
    expect(queryOf(some, 'x'.repeat(1000))).toBeDefined();
    expect(queryOf(some, 'x'.repeat(8000))).toBeUndefined();
    expect(queryOf([{ topic: 'item.1', last: 3 }])).toBeUndefined();
    expect(queryOf([{ topic: 'item.1', last: 3, epoch: 'e', offset: 1 }])).toBe('item.1@e:1');
  });

  it('splits long lists into frames that the server takes, losing none', () => {
    const many = Array.from({ length: 512 }, (_, i) => ({
      topic: `item.${'x'.repeat(180)}${i}`,
      epoch: 'e',
      offset: i,
    }));
    const split = batches(many);
    expect(split.length).toBeGreaterThan(1);
    expect(split.flat()).toEqual(many);
    for (const topics of split) {
      expect(JSON.stringify({ type: 'subscribe', req: 99, topics }).length).toBeLessThan(64 * 1024);
    }
    expect(batches([])).toEqual([]);
  });
});
