import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { settings } from '../../node/config-settings.js';
import { settingsSchema } from '../../node/config-schema.js';
import { ConfigError, loadConfig, printableConfig, type ConfigInput } from '../../node/config.js';
import { defaultLimits } from '../../protocol/limits.js';

const folder = mkdtempSync(join(tmpdir(), 'topicast-config-'));
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
function fileWith(content: unknown): string {
  const path = join(folder, `${++files}.json`);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

function problemsOf(input: Partial<ConfigInput>): readonly string[] {
  try {
    loadConfig({ env: {}, ...input });
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  throw new Error('the settings were accepted');
}

describe('defaults', () => {
  it('are an embedded node on loopback without auth', () => {
    const config = loadConfig({ env: { PATH: '/bin', TOPICASTLE: 'not ours', TOPICAST_URL: 'http://a' } });
    expect(config).toMatchObject({
      engine: 'embedded',
      authConfigured: false,
      host: '127.0.0.1',
      port: 8080,
      natsUrl: [],
      redisUrl: [],
      allowQueryToken: true,
      jwtAlgorithms: [],
      workers: 1,
      prefix: 'tc',
      limits: defaultLimits,
    });
    expect(config.nodeName).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    expect(config.namespaces['coupon']).toMatchObject({ delivery: 'durable', historyMax: 1000 });
    expect('metricsPort' in config).toBe(false);
  });

  it('are frozen through and through', () => {
    const config = loadConfig({ env: {} });
    expect(Object.isFrozen(config)).toBe(true);
    expect(Object.isFrozen(config.limits)).toBe(true);
    expect(Object.isFrozen(config.namespaces['coupon'])).toBe(true);
    expect(Object.isFrozen(config.natsUrl)).toBe(true);
  });

  it('follow the engine and the kind of key', () => {
    const cluster = loadConfig({
      env: { TOPICAST_NATS_URL: 'nats://a:4222, b:4222', TOPICAST_JWT_SECRET: 's' },
    });
    expect(cluster).toMatchObject({
      engine: 'cluster',
      natsUrl: ['nats://a:4222', 'b:4222'],
      allowQueryToken: false,
      jwtAlgorithms: ['HS256'],
      authConfigured: true,
    });
    const jwks = {
      TOPICAST_JWKS_URL: 'https://id.example/keys',
      TOPICAST_JWT_AUDIENCE: 'a',
      TOPICAST_JWT_ISSUER: 'i',
    };
    const algorithms = loadConfig({ env: jwks }).jwtAlgorithms;
    expect(algorithms).toContain('ES256');
    expect(algorithms.filter((name) => name.startsWith('HS'))).toEqual([]);
  });
});

describe('sources', () => {
  it('lay flags over environment over file', () => {
    const file = fileWith({
      host: 'localhost',
      port: 1,
      pingSec: 10,
      limits: { topicsMax: 7, tokenBytesMax: 999 },
    });
    const config = loadConfig({
      env: { TOPICAST_CONFIG: file, TOPICAST_PORT: '2', TOPICAST_PING_SEC: '11', TOPICAST_LIMIT_TOPICS: '8' },
      flags: { port: '3', logLevel: undefined, insecure: true },
    });
    expect(config).toMatchObject({
      host: 'localhost',
      port: 3,
      pingSec: 11,
      insecure: true,
      logLevel: 'info',
    });
    expect(config.limits).toEqual({ ...defaultLimits, topicsMax: 8, tokenBytesMax: 999 });
  });

  it('prefer the file that is named over the one of the environment', () => {
    const env = { TOPICAST_CONFIG: fileWith({ port: 1 }) };
    expect(loadConfig({ env, file: fileWith({ port: 2 }) }).port).toBe(2);
  });

  it('lay namespaces over the shipped ones field by field', () => {
    const { namespaces } = loadConfig({
      env: { TOPICAST_NAMESPACES: '{"coupon":{"historyMax":5},"price":{"conflateMs":250}}' },
      file: fileWith({ namespaces: { coupon: { historySec: 60, historyMax: 9 } } }),
    });
    expect(namespaces['coupon']).toMatchObject({ delivery: 'durable', historyMax: 5, historySec: 60 });
    expect(namespaces['price']).toMatchObject({ delivery: 'live', conflateMs: 250, historyMax: 100 });
    expect(namespaces['item']).toMatchObject({ delivery: 'durable', historyMax: 1000 });
  });

  it.each([
    ['1', true],
    ['true', true],
    ['0', false],
    ['false', false],
  ])('read %s as a boolean', (text, value) => {
    expect(loadConfig({ env: { TOPICAST_ALLOW_QUERY_TOKEN: text } }).allowQueryToken).toBe(value);
  });

  it('give every setting an environment name and every environment name a setting', () => {
    const top = new Set(settings.map((s) => s.path[0]));
    expect([...top].sort()).toEqual(Object.keys(settingsSchema.shape).sort());
    const limits = settings.flatMap((s) => s.path.slice(1));
    expect(limits.sort()).toEqual(Object.keys(defaultLimits).sort());
    expect(new Set(settings.map((s) => s.flag)).size).toBe(settings.length);
  });
});

describe('refused', () => {
  it.each([
    [
      { env: { TOPICAST_NATS_URLS: 'x' } },
      'environment TOPICAST_NATS_URLS: unknown setting; did you mean TOPICAST_NATS_URL?',
    ],
    [{ env: { TOPICAST_XYZZY_QUUX: 'x' } }, 'environment TOPICAST_XYZZY_QUUX: unknown setting'],
    [{ flags: { prot: '1' } }, 'flag --prot: unknown setting; did you mean --port?'],
    [
      { env: { TOPICAST_PORT: '80a' } },
      'environment TOPICAST_PORT: expected a whole number from 0 to 65535 (0: any free port)',
    ],
    [
      { env: { TOPICAST_PORT: '' } },
      'environment TOPICAST_PORT: expected a whole number from 0 to 65535 (0: any free port)',
    ],
    [{ flags: { workers: '0' } }, 'flag --workers: expected a whole number from 1 to 256 processes'],
    [{ env: { TOPICAST_INSECURE: 'yes' } }, 'environment TOPICAST_INSECURE: expected true or false'],
    [
      { env: { TOPICAST_JWT_SECRET: '' } },
      'environment TOPICAST_JWT_SECRET: expected a secret that is not empty',
    ],
    [
      { env: { TOPICAST_LIMIT_TOPICS: '-1' } },
      'environment TOPICAST_LIMIT_TOPICS: expected a whole number from 1 to 100000 topics',
    ],
    [
      { env: { TOPICAST_NAMESPACES: '{' } },
      'environment TOPICAST_NAMESPACES: expected an object: namespace name to its settings',
    ],
    [
      { env: { TOPICAST_NAMESPACES: '{"a.b":{}}' } },
      'environment TOPICAST_NAMESPACES a.b: expected a name of 1 to 64',
    ],
    [
      { env: { TOPICAST_NAMESPACES: '{"a":{"histroyMax":1}}' } },
      'environment TOPICAST_NAMESPACES a.histroyMax: unknown setting; did you mean historyMax?',
    ],
    [
      { env: { TOPICAST_NAMESPACES: '{"a":{"historySec":59}}' } },
      'environment TOPICAST_NAMESPACES a.historySec: expected a whole number from 60',
    ],
    [
      { env: { TOPICAST_NAMESPACES: '{"__proto__":{"historyMax":1}}' } },
      'environment TOPICAST_NAMESPACES: expected an object',
    ],
    [
      { env: { TOPICAST_NAMESPACES: '{"item":{"conflateMs":5}}' } },
      'namespaces.item.conflateMs: expected 0 on a durable namespace',
    ],
    [
      { env: { TOPICAST_JWT_ALGORITHMS: 'HS256,none' } },
      'environment TOPICAST_JWT_ALGORITHMS 1: expected one of HS256',
    ],
    [
      { env: { TOPICAST_JWT_SECRET: 's', TOPICAST_JWT_ALGORITHMS: 'RS256' } },
      'jwtAlgorithms (TOPICAST_JWT_ALGORITHMS): expected of HS256',
    ],
    [
      { env: { TOPICAST_ALLOWED_ORIGINS: 'https://a.example/shop' } },
      'environment TOPICAST_ALLOWED_ORIGINS 0: expected origins',
    ],
    [
      { env: { TOPICAST_NATS_URL: 'http://a' } },
      'environment TOPICAST_NATS_URL 0: expected nats:// or tls:// addresses',
    ],
    [{ env: { TOPICAST_REDIS_URL: 'redis://a' } }, 'redisUrl (TOPICAST_REDIS_URL): expected natsUrl'],
    [{ flags: { workers: 2 } }, 'workers (TOPICAST_WORKERS): expected 1 on the embedded engine'],
    [{ env: { TOPICAST_HOST: '0.0.0.0' } }, 'host (TOPICAST_HOST): expected a loopback address'],
    [{ env: { TOPICAST_HOST: '127.evil.example' } }, 'host (TOPICAST_HOST): expected a loopback address'],
    [
      { env: { TOPICAST_JWKS_URL: 'https://id.example', TOPICAST_JWT_ISSUER: 'i' } },
      'jwtAudience (TOPICAST_JWT_AUDIENCE): expected with jwksUrl',
    ],
    [
      { env: { TOPICAST_JWKS_URL: 'https://id.example', TOPICAST_JWT_AUDIENCE: 'i' } },
      'jwtIssuer (TOPICAST_JWT_ISSUER): expected with jwksUrl',
    ],
    [{ env: { TOPICAST_IDLE_SEC: '30' } }, 'idleSec (TOPICAST_IDLE_SEC): expected more than pingSec'],
    [
      { env: { TOPICAST_IDLE_SEC: '901' } },
      'environment TOPICAST_IDLE_SEC: expected a whole number from 8 to 900 seconds',
    ],
    [
      { env: { TOPICAST_TLS_CERT: '/' } },
      'tlsCert, tlsKey (TOPICAST_TLS_CERT, TOPICAST_TLS_KEY): expected both or none',
    ],
    [
      { env: { TOPICAST_NATS_CREDS: '/no/such.creds' } },
      'natsCreds: expected a file that can be read; /no/such.creds cannot (ENOENT)',
    ],
    [{ env: { TOPICAST_CONFIG: '/no/such.json' } }, 'file /no/such.json: cannot be read (ENOENT)'],
  ] satisfies [Partial<ConfigInput>, string][])('%j', (input, problem) => {
    const problems = problemsOf(input);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(problem);
  });

  it('names the file and the key of an unknown or wrong entry', () => {
    const file = fileWith({ prot: 1, limits: { topicMax: 1 }, port: '80', workers: 1 });
    expect(problemsOf({ file })).toEqual(
      expect.arrayContaining([
        `file ${file}: prot: unknown setting; did you mean port?`,
        `file ${file}: limits.topicMax: unknown setting; did you mean topicsMax?`,
        `file ${file}: port: expected a whole number from 0 to 65535 (0: any free port)`,
      ]),
    );
  });

  it.each(['[]', '3', 'null', '{"__proto__":{}}', '{"limits":3}', ''])('a file that holds %s', (content) => {
    const file = fileWith(content);
    expect(problemsOf({ file })[0]).toContain(`file ${file}`);
  });

  it('lists all the faults of all the sources', () => {
    const problems = problemsOf({
      env: { TOPICAST_PORT: 'x', TOPICAST_WORKERS: 'y' },
      flags: { host: 'a b' },
    });
    expect(problems).toHaveLength(3);
  });

  it('a second kind of key', () => {
    const env = {
      TOPICAST_JWT_SECRET: 's',
      TOPICAST_JWKS_URL: 'https://i.example',
      TOPICAST_JWT_AUDIENCE: 'a',
      TOPICAST_JWT_ISSUER: 'i',
    };
    expect(problemsOf({ env })).toContain('jwtSecret, jwksUrl: expected one of them, not several');
  });
});

describe('access', () => {
  it('lets a node with a key, or one told to be insecure, listen anywhere', () => {
    expect(loadConfig({ env: { TOPICAST_HOST: '0.0.0.0', TOPICAST_API_KEY: 'k' } }).authConfigured).toBe(
      true,
    );
    expect(loadConfig({ env: { TOPICAST_HOST: '::', TOPICAST_INSECURE: '1' } }).authConfigured).toBe(false);
  });
});

describe('secrets', () => {
  const secret = 'hunter2-hunter2';

  it('are masked in what is printed', () => {
    const config = loadConfig({
      env: {
        TOPICAST_JWT_SECRET: secret,
        TOPICAST_API_KEY: `${secret}-key`,
        TOPICAST_NATS_URL: `nats://user:${secret}@a:4222,${secret}@b:4222`,
        TOPICAST_REDIS_URL: `rediss://:${secret}@c:6379`,
      },
    });
    const shown = JSON.stringify(printableConfig(config));
    expect(shown).not.toContain('hunter2');
    expect(shown).toContain('nats://***@a:4222');
    expect(shown).toContain('rediss://***@c:6379');
    expect(config.jwtSecret).toBe(secret);
  });

  it('never appear in errors', () => {
    const file = fileWith(`{"jwtSecret": ${secret}}`);
    const problems = [
      ...problemsOf({ file }),
      ...problemsOf({ file: fileWith({ jwtSecret: { a: secret }, apiKey: `${secret} x` }) }),
      ...problemsOf({
        env: { TOPICAST_NAMESPACES: `{${secret}`, TOPICAST_REDIS_URL: `http://u:${secret}@a` },
      }),
      ...problemsOf({ env: { TOPICAST_JWT_SECRET: secret, TOPICAST_HOST: '' } }),
      ...problemsOf({
        env: { TOPICAST_PORT: secret, TOPICAST_JWKS_URL: secret, TOPICAST_LOG_LEVEL: secret },
      }),
    ];
    expect(problems.length).toBeGreaterThanOrEqual(8);
    expect(new ConfigError(problems).message).not.toContain('hunter2');
  });
});
