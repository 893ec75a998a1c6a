import { SignJWT } from 'jose';
import type { FleetUsers } from './commands.js';

const ttlSecDefault = 3600;

/** The name of the user that socket `socket`, counted over the whole fleet, belongs to. */
export function userOf(users: FleetUsers, socket: number): string {
  return `${users.prefix}${Math.floor(socket / (users.devices ?? 1))}`;
}

/** A token for each of the sockets from `first` on, that may subscribe to everything; none without a secret. */
export async function signTokens(users: FleetUsers, first: number, sockets: number): Promise<string[]> {
  const { secret, ttlSec = ttlSecDefault } = users;
  if (secret === undefined) return [];
  const key = new TextEncoder().encode(secret);
  const nowSec = Math.floor(Date.now() / 1000);
  const tokens: string[] = [];
  for (let i = 0; i < sockets; i++) {
    const user = userOf(users, first + i);
    // Devices of one user share theirs.
    const before = i > 0 && userOf(users, first + i - 1) === user ? tokens[i - 1] : undefined;
    tokens.push(
      before ??
        (await new SignJWT({ can: { sub: ['>'] } })
          .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
          .setSubject(user)
          .setIssuedAt(nowSec)
          .setExpirationTime(nowSec + ttlSec)
          .sign(key)),
    );
  }
  return tokens;
}
