import { SignJWT } from 'jose';

/** The secret of nodes under test. */
export const secret = 'a-secret-of-tests-with-enough-bytes-in-it';
/** The environment of a node that accepts tokens of `signToken`, and `apiKey` for everything. */
export const apiKey = 'key-of-tests';
export const authEnv = { TOPICAST_JWT_SECRET: secret, TOPICAST_API_KEY: apiKey } as const;

export interface TokenClaims {
  readonly sub: string;
  readonly topics?: readonly string[];
  readonly can?: {
    readonly sub?: readonly string[];
    readonly pub?: readonly string[];
    readonly push?: readonly string[];
    readonly admin?: boolean;
  };
  /** Seconds from now until it ends; 600 unless told. */
  readonly ttlSec?: number;
}

export function signToken({ ttlSec = 600, ...claims }: TokenClaims, key = secret): Promise<string> {
  return new SignJWT({ ...claims })
    .setProtectedHeader({ alg: 'HS256' })
    .setExpirationTime(Math.floor(Date.now() / 1000) + ttlSec)
    .sign(new TextEncoder().encode(key));
}
