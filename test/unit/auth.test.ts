import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  exportJWK,
  exportSPKI,
  generateKeyPair,
  SignJWT,
  UnsecuredJWT,
  type JWK,
  type JWTPayload,
} from 'jose';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { apiKeyUserId, createAuthenticator, tokenIdOf, type AuthConfig } from '../../node/auth.js';
import { createBlockedTokens } from '../../node/blocked-tokens.js';
import { ConfigError, loadConfig } from '../../node/config.js';
import { createRemoteKeys } from '../../node/jwks.js';
import { publicKeyCheck } from '../../node/signature-checks.js';

const secret = 'a secret of the tests, long enough for HS512: 0123456789abcdef';
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const folder = mkdtempSync(join(tmpdir(), 'topicast-auth-'));
afterAll(() => rmSync(folder, { recursive: true }));

function configWith(env: Record<string, string>): AuthConfig {
  return loadConfig({ env });
}
const withSecret = configWith({ TOPICAST_JWT_SECRET: secret });
const inAnHour = (): number => Math.floor(Date.now() / 1000) + 3600;

function sign(claims: JWTPayload, key: string = secret, alg = 'HS256'): Promise<string> {
  return new SignJWT(claims).setProtectedHeader({ alg }).sign(bytes(key));
}

describe('a shared secret', () => {
  const auth = createAuthenticator(withSecret);

  it('accepts what it signed', async () => {
    const exp = inAnHour();
    const claims = {
      sub: 'u1',
      exp,
      topics: ['item.1', 'bad topic', 7],
      can: { sub: ['coupon.>'], admin: true },
    };
    const token = await sign(claims);
    const principal = await auth.authenticate(token);
    expect(principal).toMatchObject({
      userId: 'u1',
      expSec: exp,
      topics: ['item.1'],
      tokenId: tokenIdOf(token),
    });
    expect(principal?.grants.canSubscribe('coupon.food')).toBe(true);
    expect(principal?.grants.canSubscribe('item.1')).toBe(true);
    expect(principal?.grants.canSubscribe('item.2')).toBe(false);
    expect(principal?.grants.admin).toBe(true);
  });

  it.each<[string, () => Promise<string> | string]>([
    ['another key', () => sign({ sub: 'u', exp: inAnHour() }, `${secret}!`)],
    ['an expired token', () => sign({ sub: 'u', exp: Math.floor(Date.now() / 1000) - 1 })],
    ['a token before its time', () => sign({ sub: 'u', exp: inAnHour(), nbf: inAnHour() - 60 })],
    ['no exp', () => sign({ sub: 'u' })],
    ['no sub', () => sign({ exp: inAnHour() })],
    ['a sub that is no user id', () => sign({ sub: 'a b', exp: inAnHour() })],
    ['an empty sub', () => sign({ sub: '', exp: inAnHour() })],
    ['an algorithm that is not allowed', () => sign({ sub: 'u', exp: inAnHour() }, secret, 'HS512')],
    ['alg none', () => new UnsecuredJWT({ sub: 'u', exp: inAnHour() }).encode()],
    ['an oversized token', () => sign({ sub: 'u', exp: inAnHour(), pad: 'x'.repeat(8 * 1024) })],
    ['an empty text', () => ''],
    ['no token at all', () => 'a.b.c'],
    ['dots', () => '..'],
  ])('refuses %s', async (_what, token) => {
    expect(await auth.authenticate(await token())).toBeUndefined();
  });

  it('refuses a payload that was changed after signing', async () => {
    const [header, , signature] = (await sign({ sub: 'u', exp: inAnHour() })).split('.');
    const forged = Buffer.from(JSON.stringify({ sub: 'root', exp: inAnHour() })).toString('base64url');
    expect(await auth.authenticate(`${header}.${forged}.${signature}`)).toBeUndefined();
  });

  it('demands the audience and the issuer that are set', async () => {
    const strict = createAuthenticator(
      configWith({ TOPICAST_JWT_SECRET: secret, TOPICAST_JWT_AUDIENCE: 'tc', TOPICAST_JWT_ISSUER: 'shop' }),
    );
    const base = { sub: 'u', exp: inAnHour() };
    expect(await strict.authenticate(await sign({ ...base, aud: 'tc', iss: 'shop' }))).toBeDefined();
    expect(await strict.authenticate(await sign({ ...base, aud: 'other', iss: 'shop' }))).toBeUndefined();
    expect(await strict.authenticate(await sign({ ...base, aud: 'tc', iss: 'other' }))).toBeUndefined();
    expect(await strict.authenticate(await sign(base))).toBeUndefined();
  });

  it('says why only in the debug log, without the token', async () => {
    const lines: unknown[] = [];
    const log = { debug: (...entry: unknown[]) => lines.push(entry), warn: () => undefined };
    const token = await sign({ sub: 'u', exp: inAnHour() }, 'wrong key, wrong key, wrong key!');
    await createAuthenticator(withSecret, { log: log as never }).authenticate(token);
    expect(JSON.stringify(lines)).toContain('signature');
    expect(JSON.stringify(lines)).not.toContain(token);
  });
});

describe('blocking', () => {
  it('refuses the token until it ends, however its signature is written', async () => {
    const auth = createAuthenticator(withSecret);
    const token = await sign({ sub: 'u', exp: inAnHour() });
    const principal = await auth.authenticate(token);
    auth.blockToken(principal?.tokenId ?? '', principal?.expSec ?? 0);
    expect(await auth.authenticate(token)).toBeUndefined();
    // The last character of 32 bytes in base64url has two spare bits: another spelling of the same signature.
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    const respelled = `${token.slice(0, -1)}${alphabet[alphabet.indexOf(token.slice(-1)) + 1]}`;
    expect(await createAuthenticator(withSecret).authenticate(respelled)).toBeDefined();
    expect(await auth.authenticate(respelled)).toBeUndefined();
    expect(await auth.authenticate(await sign({ sub: 'u', exp: inAnHour() + 1 }))).toBeDefined();
  });

  it('forgets what has ended and stays within its bound', () => {
    let sec = 1000;
    const blocked = createBlockedTokens(() => sec, 3);
    blocked.block('a', 1010);
    blocked.block('b', 1200);
    blocked.block('past', 999);
    expect([blocked.has('a'), blocked.has('b'), blocked.has('past')]).toEqual([true, true, false]);
    sec = 1010;
    expect(blocked.has('a')).toBe(false);
    blocked.block('c', 1300);
    blocked.block('d', 1100);
    blocked.block('e', 1400);
    expect(blocked.size).toBe(3);
    expect([blocked.has('b'), blocked.has('d'), blocked.has('e')]).toEqual([true, false, true]);
    sec = 1350;
    blocked.block('f', 1500);
    expect(blocked.size).toBe(2);
  });
});

describe('a public key file', () => {
  let pem = '';
  let rsa: CryptoKey;
  let auth: ReturnType<typeof createAuthenticator>;

  beforeAll(async () => {
    const pair = await generateKeyPair('RS256');
    rsa = pair.privateKey;
    pem = await exportSPKI(pair.publicKey);
    writeFileSync(join(folder, 'public.pem'), pem);
    auth = createAuthenticator(configWith({ TOPICAST_JWT_PUBLIC_KEY_FILE: join(folder, 'public.pem') }));
  });

  it('accepts what the private key signed', async () => {
    const token = new SignJWT({ sub: 'u', exp: inAnHour() }).setProtectedHeader({ alg: 'RS256' });
    expect(await auth.authenticate(await token.sign(rsa))).toMatchObject({ userId: 'u' });
  });

  it('refuses HMAC with the public key as the secret', async () => {
    for (const key of [pem, pem.trim()]) {
      expect(await auth.authenticate(await sign({ sub: 'u', exp: inAnHour() }, key))).toBeUndefined();
    }
  });

  it('refuses the key of another kind', async () => {
    const { privateKey } = await generateKeyPair('ES256');
    const token = new SignJWT({ sub: 'u', exp: inAnHour() }).setProtectedHeader({ alg: 'ES256' });
    expect(await auth.authenticate(await token.sign(privateKey))).toBeUndefined();
  });

  it('is refused at the start when it is none', () => {
    writeFileSync(join(folder, 'none.pem'), 'hunter2');
    const config = configWith({ TOPICAST_JWT_PUBLIC_KEY_FILE: join(folder, 'none.pem') });
    expect(() => createAuthenticator(config)).toThrow(ConfigError);
    expect(() => createAuthenticator(config)).not.toThrow(/hunter2/);
  });
});

/** Whether a check is over before the event loop turns: then µWS can still join what it writes for a handshake. */
async function isAtOnce(check: Promise<unknown>): Promise<boolean> {
  let isOver = false;
  void check.then(() => (isOver = true));
  // Runs when no promise has anything left to do.
  const atOnce = await new Promise<boolean>((resolve) => process.nextTick(() => resolve(isOver)));
  await check;
  return atOnce;
}

describe.each<[string, boolean]>([
  ['RS256', true],
  ['RS512', true],
  ['PS256', true],
  ['PS384', true],
  ['ES256', true],
  ['EdDSA', true],
  ['Ed25519', true],
  ['ES384', false],
  ['ES512', false],
])('a public key for %s', (alg, atOnce) => {
  async function keyFile() {
    const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
    const path = join(folder, `${alg}-${Math.random()}.pem`);
    writeFileSync(path, await exportSPKI(publicKey));
    const auth = createAuthenticator(configWith({ TOPICAST_JWT_PUBLIC_KEY_FILE: path }));
    const tokenOf = (claims: JWTPayload = {}) =>
      new SignJWT({ sub: 'u', exp: inAnHour(), ...claims }).setProtectedHeader({ alg }).sign(privateKey);
    return { auth, tokenOf };
  }

  it(atOnce ? 'checks at once' : 'checks beside the event loop', async () => {
    const { auth, tokenOf } = await keyFile();
    const token = await tokenOf();
    expect(await auth.authenticate(token)).toMatchObject({ userId: 'u' });
    expect(await isAtOnce(auth.authenticate(token))).toBe(atOnce);
  });

  it('refuses what is not signed so, or not valid', async () => {
    const { auth, tokenOf } = await keyFile();
    const [header = '', payload = '', signature = ''] = (await tokenOf()).split('.');
    const other = await keyFile();
    const flipped = Buffer.from(signature, 'base64url');
    flipped[8]! ^= 1;
    const forged = Buffer.from(JSON.stringify({ sub: 'root', exp: inAnHour() })).toString('base64url');
    const tokens = [
      await other.tokenOf(),
      `${header}.${forged}.${signature}`,
      `${header}.${payload}.${flipped.toString('base64url')}`,
      `${header}.${payload}.${signature.slice(0, -4)}`,
      `${header}.${payload}.${signature}AAAA`,
      `${header}.${payload}.`,
      `${header}.${payload}`,
      await tokenOf({ exp: inAnHour() - 3601 }),
      await tokenOf({ nbf: inAnHour() }),
      await tokenOf({ sub: 'a b' }),
    ];
    for (const token of tokens) expect(await auth.authenticate(token)).toBeUndefined();
  });
});

it('a public key does not check the tokens of an algorithm that it does not fit', async () => {
  const pairs = await Promise.all(['RS256', 'ES256', 'ES384', 'EdDSA'].map((alg) => generateKeyPair(alg)));
  const small = generateKeyPairSync('rsa', { modulusLength: 1024 });
  const files = [...(await Promise.all(pairs.map(({ publicKey }) => exportSPKI(publicKey))))];
  files.push(small.publicKey.export({ type: 'spki', format: 'pem' }).toString());
  for (const [i, pem] of files.entries()) {
    const key = createPublicKey(pem);
    const fitting = ['RS256', 'PS256', 'ES256', 'EdDSA', 'HS256', 'none'].filter(
      (alg) => publicKeyCheck(key, alg) !== undefined,
    );
    expect(fitting).toEqual([['RS256', 'PS256'], ['ES256'], [], ['EdDSA'], []][i]);
  }
  expect(
    publicKeyCheck(createPrivateKey(small.privateKey.export({ type: 'pkcs8', format: 'pem' })), 'RS256'),
  ).toBe(undefined);
});

describe('the API key', () => {
  const auth = createAuthenticator(configWith({ TOPICAST_API_KEY: 'the-key' }));

  it('has every right and never ends', async () => {
    const principal = await auth.authenticate('the-key');
    expect(principal?.userId).toBe(apiKeyUserId);
    expect(principal?.expSec).toBeUndefined();
    expect(principal?.grants.canPublish('a.b')).toBe(true);
    expect(principal?.grants.admin).toBe(true);
  });

  it.each(['the-ke', 'the-key2', 'THE-KEY', ''])('is not %j', async (token) => {
    expect(await auth.authenticate(token)).toBeUndefined();
  });

  it('does not open the door to tokens that nobody can check', async () => {
    expect(await auth.authenticate(await sign({ sub: 'u', exp: inAnHour() }))).toBeUndefined();
    expect(await auth.authenticate(undefined)).toBeUndefined();
  });
});

describe('open mode', () => {
  const auth = createAuthenticator(configWith({}));

  it.each<[string, string | undefined, string | undefined, string]>([
    ['no token', undefined, undefined, 'anonymous'],
    ['a name', undefined, 'amy', 'amy'],
    ['a name that is none', undefined, 'a b', 'anonymous'],
    ['no real token', 'xx', 'amy', 'amy'],
  ])('names %s', async (_what, token, name, userId) => {
    const principal = await auth.authenticate(token, name);
    expect(principal?.userId).toBe(userId);
    expect(principal?.grants.canPush('anybody')).toBe(true);
  });

  it('takes the name of a token before the one that was given', async () => {
    const token = await sign(
      { sub: 'tom', topics: ['item.1'], exp: 1 },
      'any key that is long enough!!!!!!!',
    );
    expect(await auth.authenticate(token, 'amy')).toMatchObject({ userId: 'tom', topics: ['item.1'] });
  });
});

describe('a key set URL', () => {
  const stops: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop();
  });

  async function issuerWith(...kids: string[]) {
    const pairs = new Map<string, CryptoKey>();
    const jwks = new Map<string, JWK>();
    const state = { down: false, requests: 0 };
    async function addKey(kid: string): Promise<void> {
      const pair = await generateKeyPair('ES256', { extractable: true });
      pairs.set(kid, pair.privateKey);
      jwks.set(kid, { ...(await exportJWK(pair.publicKey)), kid, alg: 'ES256' });
    }
    for (const kid of kids) await addKey(kid);
    const server = createServer((_request, response) => {
      state.requests++;
      response.statusCode = state.down ? 503 : 200;
      response.setHeader('connection', 'close').end(JSON.stringify({ keys: [...jwks.values()] }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const close = () => new Promise<void>((resolve) => server.close(() => resolve()));
    stops.push(async () => {
      if (server.listening) await close();
    });
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
    const tokenOf = (kid: string, claims: JWTPayload = {}) =>
      new SignJWT({ sub: 'u', exp: inAnHour(), aud: 'tc', iss: 'shop', ...claims })
        .setProtectedHeader({ alg: 'ES256', kid })
        .sign(pairs.get(kid) as CryptoKey);
    return { url, state, addKey, removeKey: (kid: string) => jwks.delete(kid), tokenOf, close };
  }

  it('checks with its keys, and demands audience and issuer', async () => {
    const issuer = await issuerWith('k1');
    const auth = createAuthenticator(
      configWith({ TOPICAST_JWKS_URL: issuer.url, TOPICAST_JWT_AUDIENCE: 'tc', TOPICAST_JWT_ISSUER: 'shop' }),
    );
    expect(await auth.authenticate(await issuer.tokenOf('k1'))).toMatchObject({ userId: 'u' });
    expect(await auth.authenticate(await issuer.tokenOf('k1', { aud: 'other' }))).toBeUndefined();
    expect(await auth.authenticate(await issuer.tokenOf('k1', { iss: 'other' }))).toBeUndefined();
    expect(issuer.state.requests).toBe(1);
  });

  it('checks at once with a key that it has used before, until the set is another', async () => {
    const issuer = await issuerWith('k1', 'k2');
    const auth = createAuthenticator(
      configWith({ TOPICAST_JWKS_URL: issuer.url, TOPICAST_JWT_AUDIENCE: 'tc', TOPICAST_JWT_ISSUER: 'shop' }),
    );
    const token = await issuer.tokenOf('k1');
    expect(await isAtOnce(auth.authenticate(token))).toBe(false);
    expect(await isAtOnce(auth.authenticate(token))).toBe(true);
    expect(await auth.authenticate(token)).toMatchObject({ userId: 'u' });
    for (const claims of [{ aud: 'other' }, { iss: 'other' }, { exp: inAnHour() - 3601 }]) {
      expect(await auth.authenticate(await issuer.tokenOf('k1', claims))).toBeUndefined();
    }
    const [, payload = '', signature = ''] = token.split('.');
    const header = Buffer.from(JSON.stringify({ alg: 'ES256', kid: 'k2' })).toString('base64url');
    expect(await auth.authenticate(await issuer.tokenOf('k2'))).toMatchObject({ userId: 'u' });
    expect(await auth.authenticate(`${header}.${payload}.${signature}`)).toBeUndefined();
  });

  it('knows at once what it has found, as long as that is in the set, and asks beside', async () => {
    const { clock, find, issuer, keys } = await clocked('k1', 'k2');
    expect(keys.known('ES256', 'k1')).toBeUndefined();
    await find('k1');
    await find('k2');
    expect(keys.known('ES256', 'k1')).toBeDefined();
    expect(keys.known('RS256', 'k1')).toBeUndefined();
    // Read again without a change: nothing is forgotten.
    clock.ms = 1000;
    expect(keys.known('ES256', 'k1')).toBeDefined();
    await find('x').catch(() => undefined);
    expect(issuer.state.requests).toBe(2);
    expect(keys.known('ES256', 'k1')).toBeDefined();
    issuer.removeKey('k2');
    clock.ms = 2000;
    await find('x').catch(() => undefined);
    expect(keys.known('ES256', 'k2')).toBeUndefined();
    await find('k1');
    // Too old to be believed: `getKey` waits for the newer set.
    clock.ms = 4000;
    expect(keys.known('ES256', 'k1')).toBeUndefined();
  });

  async function clocked(...kids: string[]) {
    const issuer = await issuerWith(...kids);
    const clock = { ms: 0 };
    const failures: unknown[] = [];
    const keys = createRemoteKeys(new URL(issuer.url), {
      maxAgeMs: 1000,
      cooldownMs: 100,
      now: () => clock.ms,
      onFailure: (error) => failures.push(error),
    });
    const find = async (kid: string) => keys.getKey({ alg: 'ES256', kid }, { payload: '', signature: '' });
    return { issuer, clock, failures, find, keys };
  }

  it('finds a new key at once, and asks at most once in the cooldown', async () => {
    const { issuer, clock, find } = await clocked('k1');
    await find('k1');
    await issuer.addKey('k2');
    clock.ms = 99;
    await expect(find('k2')).rejects.toThrow();
    expect(issuer.state.requests).toBe(1);
    clock.ms = 100;
    await Promise.all([find('k2'), find('k2'), find('k1')]);
    expect(issuer.state.requests).toBe(2);
    for (const kid of ['x', 'y', 'z']) await expect(find(kid)).rejects.toThrow();
    expect(issuer.state.requests).toBe(2);
  });

  it('serves from the last good set while the URL fails or is gone, and recovers', async () => {
    const { issuer, clock, failures, find } = await clocked('k1');
    await find('k1');
    issuer.state.down = true;
    clock.ms = 5000;
    await find('k1');
    expect(failures).toHaveLength(1);
    await find('k1');
    await expect(find('k2')).rejects.toThrow();
    expect(issuer.state.requests).toBe(2);
    issuer.state.down = false;
    await issuer.addKey('k2');
    clock.ms = 5100;
    await find('k2');
    await issuer.close();
    clock.ms = 9000;
    await find('k2');
    expect(failures).toHaveLength(2);
  });

  it('drops a key that was withdrawn', async () => {
    const { issuer, clock, find } = await clocked('k1', 'k2');
    await find('k2');
    issuer.removeKey('k2');
    clock.ms = 2000;
    await expect(find('k2')).rejects.toThrow();
    await find('k1');
  });

  it('asks again soon when the first read failed', async () => {
    const { issuer, clock, find } = await clocked('k1');
    issuer.state.down = true;
    await expect(find('k1')).rejects.toThrow();
    issuer.state.down = false;
    clock.ms = 100;
    await find('k1');
  });
});
