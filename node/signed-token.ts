import { decodeJwt, decodeProtectedHeader, type JWTPayload } from 'jose';

export interface TokenChecks {
  readonly algorithms: readonly string[];
  readonly audience?: string;
  readonly issuer?: string;
}

/** Whether a signature is that of the text, by one key and algorithm. */
export type SignatureCheck = (signed: string, signature: Buffer) => boolean;

const signatureSyntax = /^[A-Za-z0-9_-]+$/;

/**
 * Checks a token without waiting. jose does it through WebCrypto, whose answer comes in a later turn of the event loop; a handshake that is
 * accepted there costs 60–100 µs more, because µWS can no longer join its writes, and µWS warns of each on standard error. The
 * reading of the token is jose's.
 * @param find the check for an algorithm that is allowed and a key id; undefined: it is not known here
 * @param nowSec seconds since 1970
 * @returns undefined when the check is not known: the token has not been looked at then
 * @throws Error that says what is wrong, for the debug log
 */
export function verifyToken(
  token: string,
  find: (alg: string, kid: string | undefined) => SignatureCheck | undefined,
  checks: TokenChecks,
  nowSec: number,
): JWTPayload | undefined {
  const { alg = '', crit, kid } = decodeProtectedHeader(token);
  if (!checks.algorithms.includes(alg)) throw new Error('algorithm not allowed');
  if (crit !== undefined) throw new Error('a critical extension is not known');
  const isSigned = find(alg, typeof kid === 'string' ? kid : undefined);
  if (isSigned === undefined) return undefined;
  const end = token.lastIndexOf('.');
  const signature = token.slice(end + 1);
  const isWellFormed = signatureSyntax.test(signature);
  if (!isWellFormed || !isSigned(token.slice(0, end), Buffer.from(signature, 'base64url'))) {
    throw new Error('signature verification failed');
  }
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
