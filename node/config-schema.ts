import { z } from 'zod';
import { directTtlSecMax } from '../broker/direct-queue.js';

/**
 * What an operator may set, and in which range. `settingsSchema` checks one source at a time (the file, the
 * environment, the flags), so that a fault is reported with the source it came from; every key is
 * optional here, defaults come in `config.ts`. Messages say what is expected and never repeat the value:
 * it may be a secret.
 */

export const logLevels = ['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const;
export type LogLevel = (typeof logLevels)[number];

/** Signature algorithms by the kind of key that can check them. `none` is in neither. */
export const secretAlgorithms = ['HS256', 'HS384', 'HS512'] as const;
export const publicKeyAlgorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
] as const;
export type JwtAlgorithm = (typeof secretAlgorithms)[number] | (typeof publicKeyAlgorithms)[number];

const mib = 1024 * 1024;
const tokenSyntax = /^[A-Za-z0-9_:=-]+$/;

const whole = (min: number, max: number, note = '') =>
  z.custom<number>(
    (value) => typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max,
    `expected a whole number from ${min} to ${max}${note}`,
  );
const text = (what: string, accepts: (value: string) => boolean = () => true) =>
  z.custom<string>(
    (value) => typeof value === 'string' && value.length > 0 && accepts(value),
    `expected ${what}`,
  );
const yesNo = z.boolean('expected true or false');
const oneOf = <const T extends readonly string[]>(values: T) =>
  z.enum(values, `expected one of ${values.join(', ')}`);
const listOf = <T extends z.ZodType>(item: T, what: string) =>
  z.array(item, `expected a list of ${what}`).min(1, `expected at least one of ${what}`);

function isUrl(value: string, protocols: readonly string[]): boolean {
  if (!URL.canParse(value)) return false;
  const url = new URL(value);
  return url.hostname !== '' && protocols.includes(url.protocol);
}

/** `fetch` refuses URLs with credentials. */
function isKeySetUrl(value: string): boolean {
  return (
    isUrl(value, ['http:', 'https:']) && new URL(value).username === '' && new URL(value).password === ''
  );
}

function isNatsAddress(value: string): boolean {
  return isUrl(value.includes('://') ? value : `nats://${value}`, ['nats:', 'tls:']);
}

function isOrigin(value: string): boolean {
  return value === '*' || (URL.canParse(value) && new URL(value).origin === value);
}

const namespaceSchema = z.strictObject(
  {
    delivery: oneOf(['live', 'durable']).optional(),
    historyMax: whole(1, 1_000_000, ' messages').optional(),
    historySec: whole(60, 10 * 365 * 86_400, ' seconds').optional(),
    conflateMs: whole(0, 60_000, ' milliseconds').optional(),
    presence: yesNo.optional(),
  },
  { error: objectError('an object of namespace settings') },
);

const namespacesSchema = z
  .record(z.string(), namespaceSchema, 'expected an object: namespace name to its settings')
  .superRefine((value, context) => {
    for (const name of Object.keys(value)) {
      if (tokenSyntax.test(name) && name.length <= 64) continue;
      context.addIssue({
        code: 'custom',
        path: [name],
        message: 'expected a name of 1 to 64 characters of [A-Za-z0-9_:=-]: the first token of its topics',
      });
    }
  });

const limitsSchema = z.strictObject(
  {
    frameBytesMax: whole(1024, 16 * mib, ' bytes').optional(),
    payloadBytesMax: whole(1024, 8 * mib, ' bytes').optional(),
    topicsMax: whole(1, 100_000, ' topics').optional(),
    patternsMax: whole(0, 1000, ' patterns').optional(),
    tokenBytesMax: whole(256, 64 * 1024, ' bytes').optional(),
    headerBytesMax: whole(4096, mib, ' bytes').optional(),
    bufferBytesMax: whole(16 * 1024, 256 * mib, ' bytes').optional(),
    framesPerSecMax: whole(1, 1_000_000, ' frames a second').optional(),
    framesBurstMax: whole(1, 1_000_000, ' frames').optional(),
  },
  { error: objectError('an object of limits') },
);

export const settingsSchema = z.strictObject(
  {
    host: text('an address or host name', (value) => !/[\s/]/.test(value)).optional(),
    port: whole(0, 65_535, ' (0: any free port)').optional(),
    natsUrl: listOf(text('nats:// or tls:// addresses', isNatsAddress), 'NATS addresses').optional(),
    redisUrl: listOf(
      text('redis:// or rediss:// addresses', (value) => isUrl(value, ['redis:', 'rediss:'])),
      'Redis addresses',
    ).optional(),
    natsCreds: text('the path of a NATS credentials file').optional(),
    natsTlsCa: text('the path of a PEM file of certificate authorities').optional(),
    natsReplicas: whole(1, 5, ' copies').optional(),
    auditSec: whole(1, 3600, ' seconds').optional(),
    prefix: text('1 to 32 characters of [A-Za-z0-9_-]', (v) => /^[A-Za-z0-9_-]{1,32}$/.test(v)).optional(),
    nodeName: text('1 to 64 characters of [A-Za-z0-9_-]', (v) => /^[A-Za-z0-9_-]{1,64}$/.test(v)).optional(),
    workers: whole(1, 256, ' processes').optional(),
    jwtSecret: text('a secret that is not empty').optional(),
    jwtPublicKeyFile: text('the path of a PEM file with a public key').optional(),
    jwksUrl: text('an http:// or https:// URL without a user or password', isKeySetUrl).optional(),
    jwtAudience: text('the audience that tokens must name').optional(),
    jwtIssuer: text('the issuer that tokens must name').optional(),
    jwtAlgorithms: listOf(oneOf([...secretAlgorithms, ...publicKeyAlgorithms]), 'algorithm names').optional(),
    apiKey: text('a key that is not empty, without spaces', (value) => !/\s/.test(value)).optional(),
    allowedOrigins: listOf(
      text('origins such as https://shop.example (no path), or *', isOrigin),
      'origins',
    ).optional(),
    allowQueryToken: yesNo.optional(),
    tlsCert: text('the path of a PEM certificate').optional(),
    tlsKey: text('the path of a PEM private key').optional(),
    insecure: yesNo.optional(),
    connectRate: whole(1, 10_000_000, ' connections a second').optional(),
    connectionsMax: whole(0, 100_000_000, ' (0: no limit)').optional(),
    connectionsPerUserMax: whole(0, 1_000_000, ' (0: no limit)').optional(),
    logLevel: oneOf(logLevels).optional(),
    namespaces: namespacesSchema.optional(),
    limits: limitsSchema.optional(),
    pingSec: whole(1, 600, ' seconds').optional(),
    idleSec: whole(8, 900, ' seconds').optional(),
    slowSec: whole(1, 3600, ' seconds').optional(),
    drainSec: whole(0, 3600, ' seconds').optional(),
    expiringSec: whole(1, 3600, ' seconds').optional(),
    ringMessages: whole(1, 100_000, ' messages').optional(),
    ringBytes: whole(1024, 1024 * mib, ' bytes').optional(),
    lingerMs: whole(0, 3_600_000, ' milliseconds').optional(),
    storeBytes: whole(mib, 1024 * 1024 * mib, ' bytes').optional(),
    directTtlSec: whole(1, directTtlSecMax, ' seconds').optional(),
    directQueueMax: whole(1, 100_000, ' messages').optional(),
    metricsPort: whole(0, 65_535, ' (0: any free port)').optional(),
    console: yesNo.optional(),
  },
  { error: objectError('an object of settings') },
);

/** What one source sets. */
export type Settings = z.infer<typeof settingsSchema>;

/** Leaves zod's own message to unknown keys, which `config-sources.ts` words with a suggestion. */
function objectError(what: string): (issue: { code?: string | undefined }) => string | undefined {
  return (issue) => (issue.code === 'invalid_type' ? `expected ${what}` : undefined);
}
