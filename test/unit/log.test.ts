import { describe, expect, it } from 'vitest';
import { createLogger, redactUrl } from '../../node/log.js';
import { redactText } from '../../node/redact.js';

const jwt = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ1In0.c2lnbmF0dXJl';

function logged(write: (log: ReturnType<typeof createLogger>) => void): string {
  const lines: string[] = [];
  const log = createLogger('info', { write: (line) => lines.push(line) });
  write(log);
  return lines.join('');
}

describe('redactUrl', () => {
  it.each([
    ['/v1/connect?topics=a.b&token=secret&device=x', '/v1/connect?topics=a.b&token=***&device=x'],
    ['/v1/connect?%74oken=secret', '/v1/connect?%74oken=***'],
    ['/v1/connect?TOKEN=secret&token=again', '/v1/connect?TOKEN=***&token=***'],
    ['/v1/connect?%zz=1&token=secret', '/v1/connect?%zz=1&token=***'],
    ['/v1/users/a@b.example?x=1', '/v1/users/a@b.example?x=1'],
    ['rediss://user:secret@host:6379/0', 'rediss://***@host:6379/0'],
    ['nats://secret@host:4222', 'nats://***@host:4222'],
    ['user:sec@ret@host:4222', '***@host:4222'],
    ['https://host/path', 'https://host/path'],
    ['', ''],
  ])('%s', (url, shown) => {
    expect(redactUrl(url)).toBe(shown);
  });
});

describe('redactText', () => {
  it('masks tokens, bearers and passwords of addresses, and leaves the rest', () => {
    const text = `cannot reach redis://:pw@h:1, saw ${jwt} and bearer.${jwt}, Bearer abc and ?token=xyz&a=1`;
    expect(redactText(text)).toBe(
      'cannot reach redis://***@h:1, saw *** and bearer.***, Bearer *** and ?token=***&a=1',
    );
    expect(redactText('item.1042 at k3f9:1037')).toBe('item.1042 at k3f9:1037');
  });
});

describe('the logger', () => {
  it('masks credentials by key, in texts and in errors', () => {
    const line = logged((log) => {
      log.info({ token: 'secret1', headers: { authorization: 'Basic secret2' } }, 'upgrade');
      log.warn({ url: `/v1/connect?token=secret3` }, `refused ${jwt}`);
      log.error({ err: new Error('connect nats://u:secret4@h:4222 failed') });
    });
    expect(line).not.toMatch(/secret/);
    expect(line).not.toContain(jwt);
    expect(line).toContain('upgrade');
    for (const entry of line.trim().split('\n')) expect(() => JSON.parse(entry) as unknown).not.toThrow();
  });

  it('keeps to its level', () => {
    expect(logged((log) => log.debug('detail'))).toBe('');
  });
});
