import { describe, expect, it } from 'vitest';
import { livesUntil, readSession, writeSession } from '../../broker/redis-records.js';
import type { SessionRecord } from '../../broker/sessions.js';

const sec = 1_733_000_000;
const ms = sec * 1000;
const ttlMs = 600_000;
const read = (text: string) => readSession('ann', 'edge-1-1b2C3.4', text);

/** Nodes of several versions share these texts: what one of them writes may only get more members, and all have to be read for good. */
const written: [title: string, text: string, session: Omit<SessionRecord, 'userId' | 'id'>, now: number][] = [
  ['that has just come', `{"login":${sec}}`, { login: ms, active: ms }, ms + 900],
  ['seen later', `{"login":${sec},"active":86400}`, { login: ms, active: ms + 86_400_000 }, ms + 86_400_100],
  [
    'with a device',
    `{"login":${sec},"active":5,"device":"phone"}`,
    { login: ms, active: ms + 5000, device: 'phone' },
    ms + 6000,
  ],
  [
    'not seen for long',
    `{"until":${ms + 100_000 + ttlMs},"login":${sec},"active":7}`,
    { login: ms, active: ms + 7000 },
    ms + 100_000,
  ],
];

describe('the text of a session', () => {
  it.each(written)('%s: is written as ever, and read', (_, text, session, now) => {
    const record = { userId: 'ann', id: 'edge-1-1b2C3.4', ...session };
    const until = livesUntil(record, now);
    expect(writeSession(record, until)).toBe(text);
    expect(read(text)).toEqual({ record, until });
  });

  it('leaves out less than a second', () => {
    const record = { userId: 'ann', id: 'a-b.1', login: ms + 999, active: ms + 2001 };
    expect(writeSession(record, livesUntil(record, ms + 2500))).toBe(`{"login":${sec},"active":2}`);
  });

  it.each([
    ['times in ms', `{"login":${ms},"active":${ms + 1234}}`, ms + 1234, undefined],
    ['other members and another order', `{"device":"tv","zone":{"a":[1]},"login":${sec}}`, ms, 'tv'],
    ['a device that is no text', `{"login":${sec},"device":7}`, ms, undefined],
  ])('is read with %s', (_, text, active, device) => {
    expect(read(text)?.record).toEqual({
      userId: 'ann',
      id: 'edge-1-1b2C3.4',
      login: ms,
      active,
      ...(device === undefined ? {} : { device }),
    });
    expect(read(text)?.until).toBe(active + ttlMs);
  });

  it.each(['', '{', '7', 'null', '{"active":1}', `{"login":"${sec}"}`, `{"login":${sec},"active":"1"}`])(
    'is not taken for one: %s',
    (text) => {
      expect(read(text)).toBeUndefined();
    },
  );
});
