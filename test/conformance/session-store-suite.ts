import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sessionTtlSec, type SessionRecord, type SessionStore } from '../../broker/sessions.js';
import type { UsersEngine, UsersFixture } from './users-engine.js';

/** Times of sessions are kept to the second. */
const login = 1_700_000_000_000;
const oddUsers = ['a.b', 'a:b', 'a=b', 'a@b', 'a-b', '.', ':', '=', '@', '-', 'x'.repeat(128), '0'];

function session(userId: string, counter = 1, more: Partial<SessionRecord> = {}): SessionRecord {
  return { userId, id: `edge.1-b00t.${counter}`, login, active: login, ...more };
}

function byId(sessions: readonly SessionRecord[]): SessionRecord[] {
  return sessions.toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

/** Reads the whole list, page by page. */
async function scan(store: SessionStore, limit: number, prefix = ''): Promise<string[]> {
  const users: string[] = [];
  let cursor = '';
  do {
    const page = await store.onlineUsers(cursor, limit, prefix);
    expect(page.users.length).toBeLessThanOrEqual(limit);
    users.push(...page.users);
    cursor = page.cursor;
  } while (cursor !== '');
  return users;
}

/** What every session store does, whatever it runs on. */
export function sessionStoreConformance(name: string, engine: UsersEngine): void {
  describe(`session store: ${name}`, () => {
    let fixture: UsersFixture;
    let store: SessionStore;

    beforeEach(async () => {
      fixture = await engine.make({ queueMax: 10 });
      store = fixture.sessions;
      await store.start();
    });

    afterEach(async () => {
      await store.stop();
      await fixture.dispose();
    });

    it('knows nobody at first', async () => {
      expect(await store.sessionsOf('ann')).toEqual([]);
      expect(await store.onlineCount()).toBe(0);
      expect(await store.onlineUsers('', 10, '')).toEqual({ users: [], cursor: '' });
    });

    it('keeps what was registered, device or none', async () => {
      const phone = session('ann', 1, { device: 'phone "é"', active: login + 5000 });
      const desk = session('ann', 2);
      expect(await store.register(phone)).toEqual({ pending: [], newest: 0 });
      expect(await store.register(desk)).toEqual({ pending: [], newest: 0 });
      await store.register(session('bob'));
      expect(byId(await store.sessionsOf('ann'))).toEqual([phone, desk]);
      expect(await store.onlineCount()).toBe(2);
    });

    it('registers a session once, however often, and takes the newer record', async () => {
      await store.register(session('ann'));
      const newer = session('ann', 1, { active: login + 60_000, device: 'phone' });
      await store.register(newer);
      expect(await store.sessionsOf('ann')).toEqual([newer]);
      expect(await store.onlineCount()).toBe(1);
      expect(await scan(store, 10)).toEqual(['ann']);
    });

    it('takes a user offline with the last session', async () => {
      await store.register(session('ann', 1));
      await store.register(session('ann', 2));
      await store.remove('ann', session('ann', 1).id);
      expect(await store.sessionsOf('ann')).toEqual([session('ann', 2)]);
      expect(await store.onlineCount()).toBe(1);
      await store.remove('ann', session('ann', 2).id);
      expect(await store.sessionsOf('ann')).toEqual([]);
      expect(await store.onlineCount()).toBe(0);
      expect(await scan(store, 10)).toEqual([]);
    });

    it('ignores the removal of what it does not know', async () => {
      await store.register(session('ann', 1));
      await store.remove('ann', 'other.1');
      await store.remove('bob', session('ann', 1).id);
      expect(await store.sessionsOf('ann')).toEqual([session('ann', 1)]);
      expect(await store.onlineCount()).toBe(1);
    });

    it('registers again what has gone, when it is refreshed', async () => {
      await store.register(session('ann', 1));
      const refreshed = [session('ann', 1, { active: login + 1000 }), session('ann', 2), session('bob', 3)];
      expect(await store.refresh(refreshed)).toEqual(
        new Map([
          ['ann', 0],
          ['bob', 0],
        ]),
      );
      expect(byId(await store.sessionsOf('ann'))).toEqual(refreshed.slice(0, 2));
      expect(await store.sessionsOf('bob')).toEqual(refreshed.slice(2));
      expect(await store.onlineCount()).toBe(2);
      expect(await store.refresh([])).toEqual(new Map());
    });

    it('tells the newest direct id at connect and refresh, acknowledged or not', async () => {
      await store.register(session('ann'));
      const payload = { format: 'json', text: '1' } as const;
      const first = await fixture.queue.push('ann', payload, 60);
      const second = await fixture.queue.push('ann', payload, 60);
      await fixture.queue.acknowledge('ann', [second.id]);
      expect(await store.register(session('ann', 2))).toEqual({
        pending: [{ id: first.id, payload }],
        newest: second.id,
      });
      expect(await store.refresh([session('ann'), session('bob')])).toEqual(
        new Map([
          ['ann', second.id],
          ['bob', 0],
        ]),
      );
    });

    it('keeps users apart whose ids hold every allowed character', async () => {
      for (const user of oddUsers) await store.register(session(user));
      for (const user of oddUsers) expect(await store.sessionsOf(user)).toEqual([session(user)]);
      expect(await store.onlineCount()).toBe(oddUsers.length);
      expect((await scan(store, 3)).toSorted()).toEqual(oddUsers.toSorted());
      for (const user of oddUsers) await store.remove(user, session(user).id);
      expect(await store.onlineCount()).toBe(0);
    });

    it('lists users online, each once, in pages of any size', async () => {
      const users = Array.from({ length: 137 }, (_, i) => `user-${i}`);
      await Promise.all(users.map((user) => store.register(session(user))));
      await Promise.all(users.map((user) => store.register(session(user, 2))));
      const gone = users.filter((_, i) => i % 3 === 0);
      for (const user of gone) await store.remove(user, session(user, 1).id);
      for (const user of gone) await store.remove(user, session(user, 2).id);
      const expected = users.filter((user) => !gone.includes(user)).toSorted();
      for (const limit of [1, 7, 137, 1000]) expect((await scan(store, limit)).toSorted()).toEqual(expected);
      expect(await store.onlineCount()).toBe(expected.length);
    });

    it('lists those with a prefix, which is text and no pattern', async () => {
      const users = ['shop.a', 'shop.b', 'shop:c', 'shopper', 'a.shop.b', 'sho'];
      for (const user of users) await store.register(session(user));
      expect((await scan(store, 2, 'shop.')).toSorted()).toEqual(['shop.a', 'shop.b']);
      expect((await scan(store, 100, 'shop')).toSorted()).toEqual(['shop.a', 'shop.b', 'shop:c', 'shopper']);
      for (const prefix of ['*', 'shop*', 'sh?p', '[s]', 'nobody']) {
        expect(await scan(store, 100, prefix)).toEqual([]);
      }
    });

    it('refuses a cursor that it did not make', async () => {
      await store.register(session('ann'));
      for (const cursor of ['no cursor', '-', '\u0000', 'x'.repeat(1000), '1 OR 1', '-5', '1e99']) {
        await expect(store.onlineUsers(cursor, 10, '')).rejects.toMatchObject({ code: 'invalid_frame' });
      }
    });

    it('loses nothing when many connect and leave at once', async () => {
      const counters = Array.from({ length: 40 }, (_, i) => i);
      await Promise.all(counters.map((i) => store.register(session('ann', i))));
      expect(await store.sessionsOf('ann')).toHaveLength(40);
      await Promise.all(counters.slice(1).map((i) => store.remove('ann', session('ann', i).id)));
      expect(await store.sessionsOf('ann')).toEqual([session('ann', 0)]);
      expect(await scan(store, 10)).toEqual(['ann']);
    });

    const { clock } = engine;
    if (clock !== undefined) {
      const ttlMs = sessionTtlSec * 1000;

      it('forgets a session after its time to live, and the user with the last', async () => {
        await store.register(session('ann', 1));
        await store.register(session('bob', 1));
        clock.advance(ttlMs / 2);
        await store.register(session('ann', 2));
        clock.advance(ttlMs / 2 - 1);
        expect(await store.sessionsOf('ann')).toHaveLength(2);
        expect(await store.onlineCount()).toBe(2);
        clock.advance(1);
        expect(await store.onlineCount()).toBe(1);
        expect(await scan(store, 10)).toEqual(['ann']);
        expect(await store.sessionsOf('ann')).toEqual([session('ann', 2)]);
        expect(await store.sessionsOf('bob')).toEqual([]);
        clock.advance(ttlMs / 2);
        expect(await store.onlineCount()).toBe(0);
        expect(await store.sessionsOf('ann')).toEqual([]);
      });

      it('gives a refreshed session a full time to live', async () => {
        await store.register(session('ann'));
        for (let i = 0; i < 5; i++) {
          clock.advance(ttlMs - 1);
          await store.refresh([session('ann')]);
        }
        clock.advance(ttlMs - 1);
        expect(await store.sessionsOf('ann')).toEqual([session('ann')]);
        expect(await store.onlineCount()).toBe(1);
        clock.advance(1);
        expect(await store.onlineCount()).toBe(0);
        await store.refresh([session('ann')]);
        expect(await store.sessionsOf('ann')).toEqual([session('ann')]);
        expect(await scan(store, 10)).toEqual(['ann']);
      });

      it('does not hand a ghost to a direct message', async () => {
        await store.register(session('ann', 1));
        clock.advance(ttlMs / 2);
        await store.register(session('ann', 2));
        clock.advance(ttlMs / 2);
        const pushed = await fixture.queue.push('ann', { format: 'json', text: '1' }, 60);
        expect(pushed.sessions).toEqual([session('ann', 2)]);
      });
    }
  });
}
