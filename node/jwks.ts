import { KeyObject } from 'node:crypto';
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';

/** Where the keys that check tokens come from. */
export interface KeySource {
  /** As jose's verifier asks; rejects when no key fits. */
  readonly getKey: JWTVerifyGetKey;
  /** What `getKey` would answer, where that is known at once. */
  known(alg: string, kid: string | undefined): KeyObject | undefined;
}

export interface KeySetOptions {
  /** After this long the set is read again, while the old one still serves. */
  readonly maxAgeMs: number;
  /**
   * At most one attempt in this time, however many unknown keys are asked for and whether it fails or not. Until the first set was
   * read it is `firstReadCooldownMs` at most, since nobody gets in before.
   */
  readonly cooldownMs: number;
  readonly timeoutMs: number;
  /** Milliseconds on a clock that does not jump. */
  readonly now: () => number;
  /** Told of each failed read. */
  readonly onFailure: (error: unknown) => void;
}

const defaultOptions: KeySetOptions = {
  maxAgeMs: 600_000,
  cooldownMs: 30_000,
  timeoutMs: 5000,
  now: () => performance.now(),
  onFailure: () => undefined,
};

const firstReadCooldownMs = 2000;

/**
 * The keys behind a JWKS URL, as jose's verifier asks for them. Unlike jose's own remote set, which refuses every token
 * once its cache is old and the URL is down, and then asks the URL for each of them (jose 6.2, `createRemoteJWKSet`): the last good set
 * serves until a newer one was read, and attempts are limited when they fail, too.
 *
 * A set that is older than `maxAgeMs` is refreshed beside the check; one older than twice that (nobody connected for so long) is
 * waited for, so that a key withdrawn long ago is not accepted once more.
 */
export function createRemoteKeys(url: URL, options: Partial<KeySetOptions> = {}): KeySource {
  const { maxAgeMs, cooldownMs, timeoutMs, now, onFailure } = { ...defaultOptions, ...options };
  let text: string | undefined;
  let keys: JWTVerifyGetKey | undefined;
  /** Which key jose has taken of the set for an algorithm and key id; there are few, as only keys of the set are found. */
  let found = new Map<string, KeyObject>();
  let readAt = -Infinity;
  let triedAt = -Infinity;
  let reading: Promise<void> | undefined;

  async function read(): Promise<void> {
    try {
      const newest = await fetchKeySet(url, timeoutMs);
      // Mostly nothing has changed, and then what was found stays.
      if (newest !== text) {
        // jose checks the shape.
        keys = createLocalJWKSet(JSON.parse(newest) as JSONWebKeySet);
        found = new Map();
        text = newest;
      }
      readAt = now();
    } catch (error) {
      onFailure(error);
    }
  }

  /** Never rejects: a failed read leaves the set as it is. */
  function refresh(): Promise<void> {
    const pauseMs = keys === undefined ? Math.min(cooldownMs, firstReadCooldownMs) : cooldownMs;
    if (reading === undefined && now() - triedAt >= pauseMs) {
      triedAt = now();
      reading = read().finally(() => {
        reading = undefined;
      });
    }
    return reading ?? Promise.resolve();
  }

  async function resolve(set: JWTVerifyGetKey, ...[header, token]: Parameters<JWTVerifyGetKey>) {
    const key = await set(header, token);
    if (set === keys && key instanceof CryptoKey) {
      found.set(nameOf(header.alg, header.kid), KeyObject.from(key));
    }
    return key;
  }

  async function getKey(...[header, token]: Parameters<JWTVerifyGetKey>) {
    const age = now() - readAt;
    if (age >= maxAgeMs) {
      const refreshed = refresh();
      if (age >= 2 * maxAgeMs) await refreshed;
    }
    if (keys === undefined) throw new errors.JWKSNoMatchingKey('no key set could be read yet');
    const before = keys;
    try {
      return await resolve(before, header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      await refresh();
      if (keys === before) throw error;
      return resolve(keys, header, token);
    }
  }

  function known(alg: string, kid: string | undefined): KeyObject | undefined {
    const age = now() - readAt;
    // `getKey` waits for the newer set.
    if (age >= 2 * maxAgeMs) return undefined;
    if (age >= maxAgeMs) void refresh();
    return found.get(nameOf(alg, kid));
  }

  return { getKey, known };
}

/** Algorithms have no space in them. */
function nameOf(alg: string, kid: unknown): string {
  return typeof kid === 'string' ? `${alg} ${kid}` : alg;
}

async function fetchKeySet(url: URL, timeoutMs: number): Promise<string> {
  const response = await fetch(url, {
    headers: { accept: 'application/json, application/jwk-set+json' },
    redirect: 'error',
    signal: AbortSignal.timeout(timeoutMs),
  });
  if (!response.ok) throw new Error(`the key set was answered with status ${response.status}`);
  return response.text();
}
