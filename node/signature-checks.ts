import {
  constants,
  createHmac,
  timingSafeEqual,
  verify,
  type KeyObject,
  type SigningOptions,
} from 'node:crypto';
import type { SignatureCheck } from './signed-token.js';

const secretHashes: Readonly<Record<string, string>> = { HS256: 'sha256', HS384: 'sha384', HS512: 'sha512' };

/** The check of a shared secret; undefined for an algorithm that is not one of it. */
export function secretCheck(secret: Buffer, alg: string): SignatureCheck | undefined {
  const hash = secretHashes[alg];
  if (hash === undefined) return undefined;
  return (signed, signature) => {
    const expected = createHmac(hash, secret).update(signed).digest();
    return signature.length === expected.length && timingSafeEqual(signature, expected);
  };
}

interface Scheme {
  /** `null`: the algorithm has its own. */
  readonly hash: string | null;
  readonly fits: (key: KeyObject) => boolean;
  readonly options?: SigningOptions;
}

const rsaBitsMin = 2048;
const isRsa = (key: KeyObject): boolean =>
  key.asymmetricKeyType === 'rsa' && (key.asymmetricKeyDetails?.modulusLength ?? 0) >= rsaBitsMin;
const isP256 = (key: KeyObject): boolean => key.asymmetricKeyDetails?.namedCurve === 'prime256v1';
const isEd25519 = (key: KeyObject): boolean => key.asymmetricKeyType === 'ed25519';

const pkcs1 = { padding: constants.RSA_PKCS1_PADDING };
const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };

/**
 * Those that are cheap: 37 µs (RS256) to 175 µs (EdDSA) on the machine where jose's way took 240–450 µs of the event loop. ES384 and ES512 are
 * left to jose: they take 900 and 2,000 µs, which WebCrypto spends beside the event loop.
 */
const schemes: Readonly<Record<string, Scheme>> = {
  RS256: { hash: 'sha256', fits: isRsa, options: pkcs1 },
  RS384: { hash: 'sha384', fits: isRsa, options: pkcs1 },
  RS512: { hash: 'sha512', fits: isRsa, options: pkcs1 },
  PS256: { hash: 'sha256', fits: isRsa, options: pss },
  PS384: { hash: 'sha384', fits: isRsa, options: pss },
  PS512: { hash: 'sha512', fits: isRsa, options: pss },
  ES256: { hash: 'sha256', fits: isP256, options: { dsaEncoding: 'ieee-p1363' } },
  EdDSA: { hash: null, fits: isEd25519 },
  Ed25519: { hash: null, fits: isEd25519 },
};

/** The check of a public key; undefined for an algorithm that does not fit it, or that is left to jose. */
export function publicKeyCheck(key: KeyObject, alg: string): SignatureCheck | undefined {
  const scheme = Object.hasOwn(schemes, alg) ? schemes[alg] : undefined;
  if (scheme === undefined || key.type !== 'public' || !scheme.fits(key)) return undefined;
  const { hash, options } = scheme;
  return (signed, signature) => verify(hash, Buffer.from(signed), { key, ...options }, signature);
}
