import { createHash, createPublicKey, randomBytes, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { decodeJwt, jwtVerify, type JWTPayload, type JWTVerifyOptions } from 'jose';
import { isUserId } from '../protocol/topic.js';
import { createBlockedTokens } from './blocked-tokens.js';
import { ConfigError, type Config } from './config.js';
import { GrantsCache } from './grants-cache.js';
import { allGrants, readTopics, type Grants } from './grants.js';
import { createRemoteKeys, type KeySource } from './jwks.js';
import type { Logger } from './log.js';
import { ownText } from './own-text.js';
import { publicKeyCheck, secretCheck } from './signature-checks.js';
import { verifyToken } from './signed-token.js';

/** Who is behind a connection or a request, and what they may do. */
export interface Principal {
  readonly userId: string;
  readonly grants: Grants;
  /** When the token ends, seconds since 1970; absent when it never does (API key, open mode). */
  readonly expSec?: number;
  /** A short name of the token, the same for each of its encodings; says nothing about its content. */
  readonly tokenId: string;
  /** Topics and patterns to subscribe to without being asked. */
  readonly topics: readonly string[];
}

export interface Authenticator {
  /**
   * Checks a token. Undefined for every fault; which one it was is in the debug log only.
   * In open mode (nothing configured) everybody has all rights, and is named by the `sub` of a token that nobody checked,
   * else by `name`, else `anonymous`.
   */
  authenticate(token: string | undefined, name?: string): Promise<Principal | undefined>;
  /** Refuses a token (`Principal.tokenId`) until it would have expired. Has no effect on the API key. */
  blockToken(tokenId: string, expSec: number): void;
  /** The tokens that are refused although they have not ended. */
  blockedTokens(): { readonly id: string; readonly expSec: number }[];
}

export type AuthConfig = Pick<
  Config,
  | 'authConfigured'
  | 'jwtSecret'
  | 'jwtPublicKeyFile'
  | 'jwksUrl'
  | 'jwtAudience'
  | 'jwtIssuer'
  | 'jwtAlgorithms'
  | 'apiKey'
> & { readonly limits: Pick<Config['limits'], 'tokenBytesMax'> };

export interface AuthOptions {
  readonly log?: Pick<Logger, 'debug' | 'warn'>;
  /** Milliseconds since 1970; for tests. */
  readonly now?: () => number;
}

/** The user id of whoever shows the API key. */
export const apiKeyUserId = 'api-key';
export const anonymousUserId = 'anonymous';

/** @throws ConfigError when the public key file holds no public key */
export function createAuthenticator(config: AuthConfig, options: AuthOptions = {}): Authenticator {
  const { log, now = Date.now } = options;
  const blocked = createBlockedTokens(() => now() / 1000);
  const blockToken = (tokenId: string, expSec: number): void => blocked.block(tokenId, expSec);
  const blockedTokens = () => blocked.all();
  if (!config.authConfigured) {
    const open = (token?: string, name?: string) => openPrincipal(token, name, config.limits.tokenBytesMax);
    return { authenticate: async (token, name) => open(token, name), blockToken, blockedTokens };
  }

  const isApiKey = createApiKeyCheck(config.apiKey);
  const verify = createVerifier(config, log);
  const grants = new GrantsCache();

  async function authenticate(token: string | undefined): Promise<Principal | undefined> {
    if (token === undefined || token.length > config.limits.tokenBytesMax) {
      return refuse('no token, or a too long one');
    }
    if (isApiKey(token)) return apiKeyPrincipal();
    if (verify === undefined) return refuse('not the API key');
    const tokenId = tokenIdOf(token);
    if (blocked.has(tokenId)) return refuse('the token is blocked');
    try {
      // No `await` where there is nothing to wait for: see `signed-token.ts`.
      const verified = verify(token, now());
      const payload = verified instanceof Promise ? await verified : verified;
      // Blocked while its check was waiting for a key set.
      if (blocked.has(tokenId)) return refuse('the token is blocked');
      return tokenPrincipal(payload, tokenId, grants) ?? refuse('sub is not a user id');
    } catch (error) {
      return refuse(error instanceof Error ? error.message : 'the token cannot be checked');
    }
  }

  function refuse(reason: string): undefined {
    log?.debug({ reason }, 'token refused');
  }

  return { authenticate, blockToken, blockedTokens };
}

/**
 * Names a token by what is signed of it. The signature is left out: it can be written in several ways (spare bits of base64url, the
 * second solution of ECDSA), and a blocked token must not come back in another of them.
 */
export function tokenIdOf(token: string): string {
  const end = token.lastIndexOf('.');
  const signed = end < 0 ? token : token.slice(0, end);
  return ownText(createHash('sha256').update(signed).digest('base64url').slice(0, 22));
}

function tokenPrincipal(payload: JWTPayload, tokenId: string, grants: GrantsCache): Principal | undefined {
  const { sub, exp } = payload;
  if (typeof sub !== 'string' || !isUserId(sub) || exp === undefined) return undefined;
  const topics = readTopics(payload['topics']);
  return { userId: sub, grants: grants.read(payload['can'], topics), expSec: exp, tokenId, topics };
}

function apiKeyPrincipal(): Principal {
  return { userId: apiKeyUserId, grants: allGrants, tokenId: apiKeyUserId, topics: [] };
}

function openPrincipal(
  token: string | undefined,
  name: string | undefined,
  tokenBytesMax: number,
): Principal {
  const claims = token === undefined || token.length > tokenBytesMax ? {} : unverifiedClaims(token);
  const userId = [claims.sub, name].find((id) => typeof id === 'string' && isUserId(id)) ?? anonymousUserId;
  return {
    userId: ownText(userId),
    grants: allGrants,
    tokenId: token === undefined ? anonymousUserId : tokenIdOf(token),
    topics: readTopics(claims['topics']),
  };
}

function unverifiedClaims(token: string): JWTPayload {
  try {
    return decodeJwt(token);
  } catch {
    // Any text may stand where a token is expected; in open mode it is merely not a name.
    return {};
  }
}

function verifyOptions(config: AuthConfig): JWTVerifyOptions {
  return {
    algorithms: [...config.jwtAlgorithms],
    requiredClaims: ['exp', 'sub'],
    ...(config.jwtAudience === undefined ? {} : { audience: config.jwtAudience }),
    ...(config.jwtIssuer === undefined ? {} : { issuer: config.jwtIssuer }),
  };
}

/** Compares keyed hashes of equal length, so that neither the length nor a common start of the key shows in the time taken. */
function createApiKeyCheck(apiKey: string | undefined): (token: string) => boolean {
  if (apiKey === undefined) return () => false;
  const salt = randomBytes(32);
  const digest = (text: string): Buffer => createHash('sha256').update(salt).update(text).digest();
  const expected = digest(apiKey);
  return (token) => timingSafeEqual(digest(token), expected);
}

type Verify = (token: string, nowMs: number) => JWTPayload | Promise<JWTPayload>;

/** Undefined when no kind of token is configured, but an API key. */
function createVerifier(config: AuthConfig, log: AuthOptions['log']): Verify | undefined {
  const { jwtAlgorithms, jwtAudience, jwtIssuer, jwtSecret } = config;
  const checks = {
    algorithms: jwtAlgorithms,
    ...(jwtAudience !== undefined && { audience: jwtAudience }),
    ...(jwtIssuer !== undefined && { issuer: jwtIssuer }),
  };
  if (jwtSecret !== undefined) {
    const secret = Buffer.from(jwtSecret);
    return (token, nowMs) => {
      const payload = verifyToken(token, (alg) => secretCheck(secret, alg), checks, nowMs / 1000);
      if (payload === undefined) throw new Error('not an algorithm of a secret');
      return payload;
    };
  }
  const keys = createKeySource(config, log);
  if (keys === undefined) return undefined;
  const options = verifyOptions(config);
  const find = (alg: string, kid: string | undefined) => {
    const key = keys.known(alg, kid);
    return key === undefined ? undefined : publicKeyCheck(key, alg);
  };
  const verifyLater = async (token: string, nowMs: number) =>
    (await jwtVerify(token, keys.getKey, { ...options, currentDate: new Date(nowMs) })).payload;
  return (token, nowMs) => verifyToken(token, find, checks, nowMs / 1000) ?? verifyLater(token, nowMs);
}

function createKeySource(config: AuthConfig, log: AuthOptions['log']): KeySource | undefined {
  if (config.jwtPublicKeyFile !== undefined) return publicKey(config.jwtPublicKeyFile);
  if (config.jwksUrl === undefined) return undefined;
  return createRemoteKeys(new URL(config.jwksUrl), {
    onFailure: (error) => log?.warn({ err: error }, 'the key set cannot be read; the last good one serves'),
  });
}

/** jose imports a key object once per algorithm, and refuses algorithms that do not fit it. */
function publicKey(path: string): KeySource {
  try {
    const key = createPublicKey(readFileSync(path));
    return { getKey: () => key, known: () => key };
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    throw new ConfigError([`jwtPublicKeyFile: expected a public key in PEM in ${path} (${reason})`]);
  }
}
