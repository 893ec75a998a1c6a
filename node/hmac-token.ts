import { createHmac, timingSafeEqual } from 'node:crypto';
import { decodeJwt, decodeProtectedHeader, type JWTPayload } from 'jose';

export interface TokenChecks {
  readonly algorithms: readonly string[];
  readonly audience?: string;
  readonly issuer?: string;
}

const hashes: Readonly<Record<string, string>> = { HS256: 'sha256', HS384: 'sha384', HS512: 'sha512' };
const signatureSyntax = /^[A-Za-z0-9_-]+$/;

/**
 * Checks a token that is signed with a shared secret, without waiting. jose does it through WebCrypto, whose answer comes in a later turn of the
 * event loop; a handshake that is accepted there costs 60–100 µs more, because µWS can no longer join its writes. The reading of
 * the token is jose's.
 * @param nowSec seconds since 1970
 * @throws Error that says what is wrong, for the debug log
 */
export function verifyHmacToken(
  token: string,
  secret: Buffer,
  checks: TokenChecks,
  nowSec: number,
): JWTPayload {
  const header = decodeProtectedHeader(token);
  const hash = hashes[header.alg ?? ''];
  if (hash === undefined || !checks.algorithms.includes(header.alg ?? '')) {
    throw new Error('algorithm not allowed');
  }
  if (header.crit !== undefined) throw new Error('a critical extension is not known');
  const end = token.lastIndexOf('.');
  const signature = token.slice(end + 1);
  const expected = createHmac(hash, secret).update(token.slice(0, end)).digest();
  const actual = Buffer.from(signature, 'base64url');
  const isSame = signatureSyntax.test(signature) && actual.length === expected.length;
  if (!isSame || !timingSafeEqual(actual, expected)) throw new Error('signature verification failed');
  const payload = decodeJwt(token);
  checkClaims(payload, checks, nowSec);
  return payload;
}

function checkClaims(payload: JWTPayload, { audience, issuer }: TokenChecks, nowSec: number): void {
  const { aud, exp, iat, iss, nbf } = payload;
  if (typeof exp !== 'number' || exp <= nowSec) throw new Error('expired, or without exp');
  if (nbf !== undefined && (typeof nbf !== 'number' || nbf > nowSec)) throw new Error('not valid yet');
  if (iat !== undefined && typeof iat !== 'number') throw new Error('iat is not a number');
  if (issuer !== undefined && iss !== issuer) throw new Error('another issuer');
  const audiences = Array.isArray(aud) ? aud : [aud];
  if (audience !== undefined && !audiences.includes(audience)) throw new Error('another audience');
}
