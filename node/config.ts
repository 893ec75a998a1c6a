import { accessSync, constants } from 'node:fs';
import { hostname } from 'node:os';
import { directQueueMax, directTtlSecMax } from '../broker/direct-queue.js';
import { defaultNamespace, shippedNamespaces, type NamespaceSettings } from '../broker/namespaces.js';
import { defaultLimits, type Limits } from '../protocol/limits.js';
import {
  publicKeyAlgorithms,
  secretAlgorithms,
  type JwtAlgorithm,
  type LogLevel,
  type Settings,
} from './config-schema.js';
import { configFileEnv, settings } from './config-settings.js';
import { errorCode, readEnvironment, readFlags, readSettingsFile } from './config-sources.js';
import { redactUrl } from './redact.js';

/** The settings of one node: complete, checked and frozen, inner objects too. */
export interface Config {
  readonly engine: 'embedded' | 'cluster';
  /** Whether anything checks who calls: a secret, a public key, a key set or an API key. */
  readonly authConfigured: boolean;
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Empty on the embedded engine. */
  readonly natsUrl: readonly string[];
  readonly redisUrl: readonly string[];
  readonly natsCreds?: string;
  readonly natsTlsCa?: string;
  readonly prefix: string;
  /** Copies of each stream, when there are as many NATS servers. */
  readonly natsReplicas: number;
  /** How often the tail of each stream is compared with what was delivered. */
  readonly auditSec: number;
  readonly nodeName: string;
  readonly workers: number;
  /** At most one of the secret, the public key and the key set is there. */
  readonly jwtSecret?: string;
  readonly jwtPublicKeyFile?: string;
  readonly jwksUrl?: string;
  readonly jwtAudience?: string;
  readonly jwtIssuer?: string;
  /** Those that fit the kind of key; empty without one. */
  readonly jwtAlgorithms: readonly JwtAlgorithm[];
  readonly apiKey?: string;
  /** Absent: any origin when auth is configured, else only the node's own. `*` in it: any. */
  readonly allowedOrigins?: readonly string[];
  readonly allowQueryToken: boolean;
  /** Both or none. */
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly insecure: boolean;
  /** New connections a second in the whole cluster. */
  readonly connectRate: number;
  /** On this node; 0: no limit. */
  readonly connectionsMax: number;
  /** Of one user on this node; 0: no limit. */
  readonly connectionsPerUserMax: number;
  readonly logLevel: LogLevel;
  /** The listed namespaces, with the shipped ones; for `createNamespaces`. */
  readonly namespaces: Readonly<Record<string, NamespaceSettings>>;
  readonly limits: Limits;
  readonly pingSec: number;
  readonly idleSec: number;
  /** How long a slow reader may stay undrained before close 4001. */
  readonly slowSec: number;
  /** Over how long connections are moved away on SIGTERM. */
  readonly drainSec: number;
  /** How long before its token ends a client is told. */
  readonly expiringSec: number;
  /** Recent messages kept in memory per hosted durable topic, and their bytes. */
  readonly ringMessages: number;
  readonly ringBytes: number;
  /** How long interest in a topic is kept after its last subscriber. */
  readonly lingerMs: number;
  /** Payload bytes that the embedded store holds. */
  readonly storeBytes: number;
  readonly directTtlSec: number;
  readonly directQueueMax: number;
  /** Absent: `/metrics` is on the main port and wants a grant. */
  readonly metricsPort?: number;
  /** Whether the console is served at `/`. */
  readonly console: boolean;
}

/** Every fault of the settings, one line each: source, key, what is expected. Holds no values. */
export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`the settings cannot be used:\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

export interface ConfigInput {
  /** Usually `process.env`. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Settings from the command line by camel-case flag key (`Setting.flag`), as text or value. Nothing else may be in it. */
  readonly flags?: Readonly<Record<string, unknown>>;
  /** Path of the settings file (`--config`); the one of `TOPICAST_CONFIG` when absent. */
  readonly file?: string;
}

const defaults = {
  host: '127.0.0.1',
  port: 8080,
  natsUrl: [],
  redisUrl: [],
  prefix: 'tc',
  natsReplicas: 3,
  auditSec: 15,
  workers: 1,
  insecure: false,
  connectRate: 5000,
  connectionsMax: 0,
  connectionsPerUserMax: 0,
  logLevel: 'info',
  pingSec: 30,
  idleSec: 180,
  slowSec: 30,
  drainSec: 10,
  expiringSec: 60,
  ringMessages: 128,
  ringBytes: 1024 * 1024,
  lingerMs: 5000,
  storeBytes: 256 * 1024 * 1024,
  directTtlSec: directTtlSecMax,
  directQueueMax,
  console: true,
} satisfies Settings;

/**
 * Reads the settings: the file, then the environment, then the flags, each over the one before it. Limits and
 * namespaces are laid over each other field by field, lists are replaced.
 * @throws ConfigError with all the faults that could be found
 */
export function loadConfig({ env, flags = {}, file }: ConfigInput): Config {
  const path = file ?? env[configFileEnv];
  const reads = [
    ...(path === undefined ? [] : [readSettingsFile(path)]),
    readEnvironment(env),
    readFlags(flags),
  ];
  const problems = reads.flatMap((read) => read.problems);
  if (problems.length > 0) throw new ConfigError(problems);
  const config = complete(reads.map((read) => read.values).reduce(overlay, {}));
  const conflicts = [...crossCheck(config), ...fileProblems(config)];
  if (conflicts.length > 0) throw new ConfigError(conflicts);
  return deepFreeze(config);
}

/** The settings as they may be shown: keys and secrets, and the users, passwords and tokens of URLs, are masked. */
export function printableConfig(config: Config): Record<string, unknown> {
  const shown: Record<string, unknown> = { ...config };
  for (const { path, secret } of settings) {
    if (secret && shown[path[0]] !== undefined) shown[path[0]] = '***';
  }
  shown['natsUrl'] = config.natsUrl.map(redactUrl);
  shown['redisUrl'] = config.redisUrl.map(redactUrl);
  if (config.jwksUrl !== undefined) shown['jwksUrl'] = redactUrl(config.jwksUrl);
  return shown;
}

/** Whether an address to listen on can be reached from this machine only. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host);
}

function overlay(under: Settings, over: Settings): Settings {
  const namespaces: Record<string, object> = { ...under.namespaces };
  for (const [name, fields] of Object.entries(over.namespaces ?? {})) {
    namespaces[name] = { ...namespaces[name], ...fields };
  }
  return { ...under, ...over, namespaces, limits: { ...under.limits, ...over.limits } };
}

function complete(set: Settings): Config {
  const engine = set.natsUrl === undefined ? 'embedded' : 'cluster';
  const keys = [set.jwtSecret, set.jwtPublicKeyFile, set.jwksUrl, set.apiKey];
  const merged = {
    ...defaults,
    nodeName: defaultNodeName(),
    allowQueryToken: engine === 'embedded',
    jwtAlgorithms: defaultAlgorithms(set),
    ...set,
    engine,
    authConfigured: keys.some((key) => key !== undefined),
    namespaces: completeNamespaces(set.namespaces ?? {}),
    limits: { ...defaultLimits, ...set.limits },
  };
  // zod types an absent key as `| undefined`; after parsing a key is there with its value or not at all.
  return merged as Config;
}

function completeNamespaces(set: NonNullable<Settings['namespaces']>): Record<string, NamespaceSettings> {
  const names = new Set([...Object.keys(shippedNamespaces), ...Object.keys(set)]);
  const entries = [...names].map((name) => {
    const base = Object.hasOwn(shippedNamespaces, name) ? shippedNamespaces[name] : undefined;
    const own = Object.hasOwn(set, name) ? set[name] : undefined;
    return [name, { ...defaultNamespace, ...base, ...own }] as const;
  });
  return Object.fromEntries(entries) as Record<string, NamespaceSettings>;
}

function defaultNodeName(): string {
  const name = hostname()
    .replace(/[^A-Za-z0-9_-]/g, '-')
    .slice(0, 64);
  return name === '' ? 'node' : name;
}

function defaultAlgorithms(set: Settings): readonly JwtAlgorithm[] {
  if (set.jwtSecret !== undefined) return ['HS256'];
  return set.jwtPublicKeyFile === undefined && set.jwksUrl === undefined ? [] : publicKeyAlgorithms;
}

function crossCheck(config: Config): string[] {
  return [...engineProblems(config), ...accessProblems(config), ...rangeProblems(config)];
}

function engineProblems(config: Config): string[] {
  const problems: string[] = [];
  if (config.redisUrl.length > 0 && config.engine === 'embedded') {
    problems.push('redisUrl (TOPICAST_REDIS_URL): expected natsUrl (TOPICAST_NATS_URL) beside it');
  }
  if (config.workers > 1 && config.engine === 'embedded') {
    problems.push(
      'workers (TOPICAST_WORKERS): expected 1 on the embedded engine, whose topics live in one process; ' +
        'set natsUrl (TOPICAST_NATS_URL) for more',
    );
  }
  return problems;
}

function accessProblems(config: Config): string[] {
  const problems: string[] = [];
  const keys = ['jwtSecret', 'jwtPublicKeyFile', 'jwksUrl'] as const;
  const given = keys.filter((key) => config[key] !== undefined);
  if (given.length > 1) problems.push(`${given.join(', ')}: expected one of them, not several`);
  if (config.jwksUrl !== undefined) {
    if (config.jwtAudience === undefined) {
      problems.push('jwtAudience (TOPICAST_JWT_AUDIENCE): expected with jwksUrl');
    }
    if (config.jwtIssuer === undefined) {
      problems.push('jwtIssuer (TOPICAST_JWT_ISSUER): expected with jwksUrl');
    }
  }
  const fitting: readonly string[] = config.jwtSecret === undefined ? publicKeyAlgorithms : secretAlgorithms;
  if (given.length === 1 && !config.jwtAlgorithms.every((algorithm) => fitting.includes(algorithm))) {
    problems.push(
      `jwtAlgorithms (TOPICAST_JWT_ALGORITHMS): expected of ${fitting.join(', ')} with ${given[0]}`,
    );
  }
  if ((config.tlsCert === undefined) !== (config.tlsKey === undefined)) {
    problems.push('tlsCert, tlsKey (TOPICAST_TLS_CERT, TOPICAST_TLS_KEY): expected both or none');
  }
  if (!config.authConfigured && !config.insecure && !isLoopback(config.host)) {
    problems.push(
      'host (TOPICAST_HOST): expected a loopback address, as no access is configured; set TOPICAST_JWT_SECRET, ' +
        'TOPICAST_JWT_PUBLIC_KEY_FILE, TOPICAST_JWKS_URL or TOPICAST_API_KEY, or TOPICAST_INSECURE=1 to let anybody in',
    );
  }
  return problems;
}

function rangeProblems(config: Config): string[] {
  const problems: string[] = [];
  const { limits } = config;
  if (config.idleSec <= config.pingSec) {
    problems.push('idleSec (TOPICAST_IDLE_SEC): expected more than pingSec (TOPICAST_PING_SEC)');
  }
  if (limits.bufferBytesMax < limits.payloadBytesMax) {
    problems.push(
      'limits.bufferBytesMax (TOPICAST_LIMIT_BUFFER_BYTES): expected room for limits.payloadBytesMax',
    );
  }
  if (limits.headerBytesMax <= limits.tokenBytesMax) {
    problems.push(
      'limits.headerBytesMax (TOPICAST_LIMIT_HEADER_BYTES): expected more than limits.tokenBytesMax',
    );
  }
  for (const [name, { delivery, conflateMs }] of Object.entries(config.namespaces)) {
    if (delivery === 'durable' && conflateMs > 0) {
      problems.push(
        `namespaces.${name}.conflateMs: expected 0 on a durable namespace, which sends each message`,
      );
    }
  }
  return problems;
}

function fileProblems(config: Config): string[] {
  const keys = ['natsCreds', 'natsTlsCa', 'jwtPublicKeyFile', 'tlsCert', 'tlsKey'] as const;
  return keys.flatMap((key) => {
    const path = config[key];
    if (path === undefined) return [];
    try {
      accessSync(path, constants.R_OK);
      return [];
    } catch (error) {
      return [`${key}: expected a file that can be read; ${path} cannot (${errorCode(error)})`];
    }
  });
}

function deepFreeze<T extends object>(value: T): T {
  for (const inner of Object.values(value)) {
    if (typeof inner === 'object' && inner !== null) deepFreeze(inner as object);
  }
  return Object.freeze(value);
}
