import { SignJWT } from 'jose';
import { isUserId, parseFilter, parseGrant } from '../../protocol/topic.js';
import { UsageError } from './errors.js';

/** What a token is to say. Absent lists grant nothing. */
export interface TokenOptions {
  readonly sub: string;
  readonly topics?: readonly string[];
  readonly canSub?: readonly string[];
  readonly canPub?: readonly string[];
  /** User ids, or `*` for everyone. */
  readonly canPush?: readonly string[];
  readonly admin?: boolean;
  readonly ttlSec: number;
  readonly secret: string;
}

/** Makes a signed JWT (HS256). Throws `UsageError` for what a node would not accept. */
export async function mintToken(options: TokenOptions): Promise<string> {
  const { sub, topics, canSub, canPub, canPush, admin } = options;
  if (options.secret === '') throw new UsageError('a secret is missing: --secret or TOPICAST_JWT_SECRET');
  if (!isUserId(sub)) throw new UsageError(`not a user id: ${sub}: 1 to 128 of [A-Za-z0-9_.:=@-]`);
  for (const text of topics ?? []) demand(parseFilter(text), '--topics', text);
  for (const text of canSub ?? []) demand(parseGrant(text), '--can-sub', text);
  for (const text of canPub ?? []) demand(parseGrant(text), '--can-pub', text);
  for (const text of canPush ?? []) {
    if (text !== '*' && !isUserId(text)) throw new UsageError(`--can-push: not a user id: ${text}`);
  }
  const can = {
    ...(canSub === undefined ? {} : { sub: canSub }),
    ...(canPub === undefined ? {} : { pub: canPub }),
    ...(canPush === undefined ? {} : { push: canPush }),
    ...(admin === true ? { admin } : {}),
  };
  const nowSec = Math.floor(Date.now() / 1000);
  return new SignJWT({ ...(topics === undefined ? {} : { topics }), can })
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .setSubject(sub)
    .setIssuedAt(nowSec)
    .setExpirationTime(nowSec + options.ttlSec)
    .sign(new TextEncoder().encode(options.secret));
}

const unitSec: Readonly<Record<string, number>> = { '': 1, s: 1, m: 60, h: 3600, d: 86_400 };

/** Reads `90`, `30s`, `15m`, `1h` or `7d` as seconds; undefined for anything else. */
export function parseDurationSec(text: string): number | undefined {
  const match = /^([1-9]\d{0,9})([smhd]?)$/.exec(text);
  const unit = unitSec[match?.[2] ?? '?'];
  return match === null || unit === undefined ? undefined : Number(match[1]) * unit;
}

function demand(parsed: { ok: boolean; message?: string }, flag: string, text: string): void {
  if (!parsed.ok) throw new UsageError(`${flag}: ${text}: ${parsed.message ?? 'not a pattern'}`);
}
