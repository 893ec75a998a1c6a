import { describe, expect, it } from 'vitest';
import { SessionsByUser } from '../../node/sessions-by-user.js';

interface Session {
  readonly userId: string;
}

function session(userId: string): Session {
  return { userId };
}

describe('SessionsByUser', () => {
  it('finds one, several, and none', () => {
    const sessions = new SessionsByUser<Session>();
    const [a1, a2, b] = [session('ann'), session('ann'), session('bo')];
    expect([a1, b, a2].map((one) => sessions.add(one))).toEqual([1, 1, 2]);
    expect(sessions.of('ann')).toEqual([a1, a2]);
    expect(sessions.of('bo')).toEqual([b]);
    expect(sessions.of('cy')).toEqual([]);
  });

  it('forgets each on its own, and a user with the last', () => {
    const sessions = new SessionsByUser<Session>();
    const [a1, a2, b] = [session('ann'), session('ann'), session('bo')];
    for (const one of [a1, a2, b]) sessions.add(one);
    sessions.delete(a1);
    sessions.delete(a1);
    expect(sessions.of('ann')).toEqual([a2]);
    sessions.delete(a2);
    expect(sessions.of('ann')).toEqual([]);
    expect(sessions.add(a1)).toBe(1);
    sessions.delete(session('bo'));
    expect(sessions.of('bo')).toEqual([b]);
  });
});
