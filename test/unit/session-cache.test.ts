import { expect, it } from 'vitest';
import { SessionCache } from '../../node/session-cache.js';
import { createTestClock } from '../support/test-clock.js';

const sessionsOf = (userId: string) => [{ id: `n.${userId}`, userId, login: 0, active: 0 }];

it('remembers sessions for half a minute', () => {
  const clock = createTestClock();
  const cache = new SessionCache(clock.now);
  cache.put('u', sessionsOf('u'));
  clock.advance(29_999);
  expect(cache.get('u')).toEqual(sessionsOf('u'));
  clock.advance(1);
  expect(cache.get('u')).toBeUndefined();
});

it('remembers nobody who has no session, and forgets who is dropped', () => {
  const cache = new SessionCache();
  cache.put('u', sessionsOf('u'));
  cache.put('u', []);
  expect(cache.get('u')).toBeUndefined();
  cache.put('u', sessionsOf('u'));
  cache.drop('u');
  expect(cache.get('u')).toBeUndefined();
});

it('lets go of who was asked for longest ago', () => {
  const cache = new SessionCache(Date.now, 2);
  cache.put('a', sessionsOf('a'));
  cache.put('b', sessionsOf('b'));
  cache.get('a');
  cache.put('c', sessionsOf('c'));
  expect([cache.get('a'), cache.get('b'), cache.get('c')]).toEqual([
    sessionsOf('a'),
    undefined,
    sessionsOf('c'),
  ]);
});
