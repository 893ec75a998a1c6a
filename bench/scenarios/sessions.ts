import { randomBytes } from 'node:crypto';
import { SignJWT } from 'jose';
import type { ScenarioContext } from './scenario.js';
import type { Servers } from './servers.js';

const secret = randomBytes(24).toString('base64url');

/** Signs the tokens of a run. */
export function secretOf(): string {
  return secret;
}

/** For one that may publish to everything. */
export function publisherToken(): Promise<string> {
  return new SignJWT({ can: { pub: ['>'] } })
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .setSubject('publisher')
    .setIssuedAt()
    .setExpirationTime('1h')
    .sign(new TextEncoder().encode(secret));
}

/** One NATS server and a Redis Cluster for the cluster engine, nothing for the embedded one. */
export function serversOf(
  context: ScenarioContext,
  engine: 'cluster' | 'embedded',
): Promise<Servers | undefined> {
  return engine === 'embedded'
    ? Promise.resolve(undefined)
    : context.startServers({ nats: 1, redis: 'cluster' });
}
