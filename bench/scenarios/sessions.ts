import { randomBytes } from 'node:crypto';
import { SignJWT } from 'jose';
import { choice, whole } from './options.js';
import type { ScenarioContext } from './scenario.js';
import type { Servers } from './servers.js';

const secret = randomBytes(24).toString('base64url');

/** Options of the scenarios in which each session subscribes to a few topics of a pool. */
export const poolOptions = {
  pool: whole('topics in all', 100, 1, 100_000),
  engine: choice('what nodes connect to', ['cluster', 'embedded'], 'cluster'),
  codec: choice('of the clients', ['json', 'msgpack'], 'json'),
};

/** As many groups as topics: group i has the topics from i on. */
export function groupsOf(topics: readonly string[], perSession: number): string[][] {
  return topics.map((_, i) =>
    Array.from({ length: Math.min(perSession, topics.length) }, (__, k) => topics[(i + k) % topics.length]!),
  );
}

/** The same for a pool of so many topics. */
export function poolGroups(name: string, pool: number, perSession: number): string[][] {
  return groupsOf(
    Array.from({ length: pool }, (_, i) => `item.${name}-${i}`),
    perSession,
  );
}

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
