import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';

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
 * waited for, so that a key withdrawn long ago is not accepted once more. The resolver rejects when no key fits.
 */
export function createRemoteKeys(url: URL, options: Partial<KeySetOptions> = {}): JWTVerifyGetKey {
  const { maxAgeMs, cooldownMs, timeoutMs, now, onFailure } = { ...defaultOptions, ...options };
  let keys: JWTVerifyGetKey | undefined;
  let readAt = -Infinity;
  let triedAt = -Infinity;
  let reading: Promise<void> | undefined;

  async function read(): Promise<void> {
    try {
      keys = createLocalJWKSet(await fetchKeySet(url, timeoutMs));
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

  return async (header, token) => {
    const age = now() - readAt;
    if (age >= maxAgeMs) {
      const refreshed = refresh();
      if (age >= 2 * maxAgeMs) await refreshed;
    }
    if (keys === undefined) throw new errors.JWKSNoMatchingKey('no key set could be read yet');
    const before = keys;
    try {
      return await before(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      await refresh();
      if (keys === before) throw error;
      return keys(header, token);
    }
  };
}

async function fetchKeySet(url: URL, timeoutMs: number): Promise<JSONWebKeySet> {
  const response = await fetch(url, {
    headers: { accept: 'application/json, application/jwk-set+json' },
    redirect: 'error',
    signal: AbortSignal.timeout(timeoutMs),
  });
  if (!response.ok) throw new Error(`the key set was answered with status ${response.status}`);
  // `createLocalJWKSet` checks the shape.
  return (await response.json()) as JSONWebKeySet;
}
