import { createServer, type IncomingMessage, type Server } from 'node:http';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { decodeJwt, jwtVerify } from 'jose';
import { afterEach, describe, expect, it } from 'vitest';
import { UsageError } from '../../node/cli/errors.js';
import { createProgram, runCli, type CliParts } from '../../node/cli/program.js';
import { directLine, messageLine, readRequests } from '../../node/cli/sub.js';
import { parseDurationSec } from '../../node/cli/token.js';
import { settings } from '../../node/config-settings.js';
import { flagName } from '../../node/config-sources.js';

interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

interface Setting {
  readonly env?: Record<string, string>;
  readonly stdin?: string;
  readonly serve?: CliParts['serve'];
}

async function run(args: readonly string[], setting: Setting = {}): Promise<Outcome> {
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  // Read meanwhile: what is long does not fit a stream that nobody reads.
  const printed = Promise.all([text(stdout), text(stderr)]);
  const code = await runCli(args, {
    io: {
      env: setting.env ?? {},
      stdin: Readable.from([setting.stdin ?? '']),
      stdout,
      stderr,
      onStopSignal: () => () => undefined,
    },
    version: '1.2.3',
    serve: setting.serve ?? (() => Promise.reject(new Error('serve was not expected'))),
  });
  stdout.end();
  stderr.end();
  const [out, err] = await printed;
  return { code, stdout: out, stderr: err };
}

/** A server that keeps what it was asked and answers the same to everything. */
interface Fake {
  readonly url: string;
  readonly asked: { request: IncomingMessage; body: string }[];
}
let server: Server | undefined;
afterEach(() => {
  server?.close();
  server = undefined;
});
async function fakeApi(status: number, body: string, headers: Record<string, string> = {}): Promise<Fake> {
  const asked: Fake['asked'] = [];
  const created = createServer((request, response) => {
    void text(request).then((received) => {
      asked.push({ request, body: received });
      response.writeHead(status, headers).end(body);
    });
  });
  server = created;
  await new Promise<void>((resolve) => created.listen(0, '127.0.0.1', resolve));
  const address = created.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return { url: `http://127.0.0.1:${address.port}`, asked };
}

describe('wrong usage', () => {
  const cases: [string, string[]][] = [
    ['no command', []],
    ['an unknown command', ['subscribe']],
    ['an unknown option', ['sub', 'item.1', '--lats', '3']],
    ['a missing topic', ['sub']],
    ['too many arguments', ['pub', 'item.1', '1', '2']],
    ['a malformed topic to subscribe to', ['sub', 'item..1']],
    ['a malformed position', ['sub', 'item.1@k3f9:-1']],
    ['a pattern to publish to', ['pub', 'item.*', '1']],
    ['a message that is not JSON', ['pub', 'item.1', '{"a":']],
    ['two JSON documents', ['pub', 'item.1', '1 2']],
    ['an empty message', ['pub', 'item.1', '']],
    ['a malformed user', ['push', 'no spaces', '1']],
    ['a missing message', ['push', 'alice']],
    ['a malformed ttl', ['push', 'alice', '1', '--ttl', 'soon']],
    ['a malformed count', ['sub', 'item.1', '--last', '0']],
    ['a malformed address', ['sub', 'item.1', '--url', 'localhost']],
    ['an address of another kind', ['pub', 'item.1', '1', '--url', 'ftp://localhost']],
    ['a token without a user', ['token', '--secret', 's']],
    ['a token without a secret', ['token', '--sub', 'alice']],
    ['a malformed grant', ['token', '--sub', 'alice', '--secret', 's', '--can-sub', 'item..x']],
    ['a grant for a malformed user', ['token', '--sub', 'alice', '--secret', 's', '--can-push', 'a b']],
    ['an unknown option of serve', ['serve', '--prot', '1']],
    ['an unknown scenario', ['bench', 'nothing', '--sockets', '5']],
    ['no file to report', ['bench', 'report']],
  ];
  it.each(cases)('%s ends with 2', async (_what, args) => {
    const outcome = await run(args);
    expect(outcome.code).toBe(2);
    expect(outcome.stdout).toBe('');
    expect(outcome.stderr).not.toBe('');
    expect(outcome.stderr).not.toMatch(/^\s+at /m);
    if (args.length > 0) expect(outcome.stderr).toMatch(/^error: [^\n]+\n$/);
  });

  it('of standard input too', async () => {
    for (const stdin of ['', '{"a":1}\n{"a":2}']) {
      for (const args of [
        ['pub', 'item.1'],
        ['pub', 'item.1', '-'],
        ['push', 'alice', '-'],
      ]) {
        expect((await run(args, { stdin })).code).toBe(2);
      }
    }
  });
});

describe('help', () => {
  it('is there for every command, with examples', async () => {
    const names = createProgram({
      io: {
        env: {},
        stdin: Readable.from([]),
        stdout: new PassThrough(),
        stderr: new PassThrough(),
        onStopSignal: () => () => undefined,
      },
      version: '1.2.3',
      serve: () => Promise.resolve(),
    }).commands.map((command) => command.name());
    expect(names).toEqual(['serve', 'sub', 'pub', 'push', 'token', 'bench', 'plan']);
    for (const args of [['--help'], ...names.map((name) => [name, '--help'])]) {
      const outcome = await run(args);
      expect(outcome).toMatchObject({ code: 0, stderr: '' });
      expect(outcome.stdout).toContain('Examples:\n  topicast');
    }
  });

  it('tells the version', async () => {
    expect(await run(['--version'])).toEqual({ code: 0, stdout: '1.2.3\n', stderr: '' });
  });
});

describe('serve', () => {
  it('is given the flags of the command line, as text', async () => {
    let given: unknown;
    const serve = (flags: Record<string, unknown>): Promise<void> => {
      given = flags;
      return Promise.resolve();
    };
    const args = ['serve', '--port', '0', '--nats-url', 'nats://a,nats://b', '--print-config'];
    expect((await run(args, { serve, env: { TOPICAST_HOST: '::1' } })).code).toBe(0);
    expect(given).toEqual({ port: '0', natsUrl: 'nats://a,nats://b', printConfig: true });
  });

  it('has a flag for every setting, under the key by which settings are read', async () => {
    const args = settings.flatMap(({ flag }) => [flagName(flag), 'x']);
    let given: unknown;
    const serve = (flags: Record<string, unknown>): Promise<void> => {
      given = flags;
      return Promise.resolve();
    };
    expect((await run(['serve', ...args], { serve })).code).toBe(0);
    expect(given).toEqual(Object.fromEntries(settings.map(({ flag }) => [flag, 'x'])));
  });

  it('tells wrong settings from failures', async () => {
    const wrong = await run(['serve'], { serve: () => Promise.reject(new UsageError('port: a number')) });
    expect(wrong).toEqual({ code: 2, stdout: '', stderr: 'error: port: a number\n' });
    const failed = await run(['serve'], { serve: () => Promise.reject(new Error('port\n  in use')) });
    expect(failed).toEqual({ code: 1, stdout: '', stderr: 'error: port in use\n' });
  });
});

describe('pub and push', () => {
  it('send the JSON untouched, with token and id, and print the answer', async () => {
    const api = await fakeApi(200, '{"topic":"item.1","epoch":"e","offset":3}\n');
    const json = '{"n": 9007199254740993, "x":1.0}';
    const outcome = await run(['pub', 'item.1', json, '--id', 'k1', '--token', 'T'], {
      env: { TOPICAST_URL: api.url },
    });
    expect(outcome).toEqual({ code: 0, stdout: '{"topic":"item.1","epoch":"e","offset":3}\n', stderr: '' });
    const [asked] = api.asked;
    expect(asked?.body).toBe(json);
    expect(asked?.request).toMatchObject({ method: 'POST', url: '/v1/topics/item.1/messages' });
    expect(asked?.request.headers).toMatchObject({
      authorization: 'Bearer T',
      'idempotency-key': 'k1',
      'content-type': 'application/json',
    });
  });

  it('take the token of the environment, a base path, negative numbers and standard input', async () => {
    const api = await fakeApi(202, '{"topic":"news.a"}');
    const env = { TOPICAST_URL: `${api.url}/base/`, TOPICAST_TOKEN: 'E' };
    expect((await run(['pub', 'news.a', '-5'], { env })).code).toBe(0);
    expect((await run(['pub', 'news.a', '-'], { env, stdin: ' [1,\n2] ' })).code).toBe(0);
    expect((await run(['pub', 'news.a'], { env, stdin: 'true' })).code).toBe(0);
    expect(api.asked.map(({ body }) => body)).toEqual(['-5', ' [1,\n2] ', 'true']);
    expect(api.asked[0]?.request.url).toBe('/base/v1/topics/news.a/messages');
    expect(api.asked[0]?.request.headers['authorization']).toBe('Bearer E');
  });

  it('push to one user, with its options', async () => {
    const api = await fakeApi(200, '{"id":1,"status":"queued","sessions":0}');
    expect((await run(['push', 'a@b.c', '1', '--url', api.url])).code).toBe(0);
    expect((await run(['push', 'alice', '1', '--no-queue', '--ttl', '2m', '--url', api.url])).code).toBe(0);
    expect(api.asked.map(({ request }) => request.url)).toEqual([
      '/v1/users/a%40b.c/messages',
      '/v1/users/alice/messages?queue=false&ttlSec=120',
    ]);
  });

  it('end with 1 and say why when the server refuses', async () => {
    const api = await fakeApi(503, '{"error":{"code":"unavailable","message":"NATS is away"}}', {
      'retry-after': '3',
    });
    expect(await run(['pub', 'item.1', '1', '--url', api.url])).toEqual({
      code: 1,
      stdout: '',
      stderr: 'error: refused with 503 unavailable: NATS is away; try again in 3 s\n',
    });
  });

  it('end with 1 and say where when nobody answers', async () => {
    const api = await fakeApi(200, '{}');
    await new Promise((resolve) => server?.close(resolve));
    expect(await run(['push', 'alice', '1', '--url', api.url])).toEqual({
      code: 1,
      stdout: '',
      stderr: `error: cannot reach ${api.url}: connection refused\n`,
    });
  });
});

describe('token', () => {
  const secret = 'a secret that is long enough for HS256';
  it('makes one that verifies and says what was granted', async () => {
    const args = ['token', '--sub', 'alice', '--can-sub', 'coupon.>', 'item.*', '--can-pub', '>'];
    args.push('--can-push', '*', '--admin', '--topics', 'item.1', '--ttl', '2h');
    const outcome = await run(args, { env: { TOPICAST_JWT_SECRET: secret } });
    expect(outcome).toMatchObject({ code: 0, stderr: '' });
    const { payload, protectedHeader } = await jwtVerify(
      outcome.stdout.trim(),
      new TextEncoder().encode(secret),
      { algorithms: ['HS256'] },
    );
    expect(protectedHeader.alg).toBe('HS256');
    expect(payload).toMatchObject({
      sub: 'alice',
      topics: ['item.1'],
      can: { sub: ['coupon.>', 'item.*'], pub: ['>'], push: ['*'], admin: true },
    });
    expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(7200);
    await expect(jwtVerify(outcome.stdout.trim(), new TextEncoder().encode('another'))).rejects.toThrow();
  });

  it('grants nothing that was not named, for an hour', async () => {
    const outcome = await run(['token', '--sub', 'bob', '--secret', secret]);
    const claims = decodeJwt(outcome.stdout.trim());
    expect(claims['can']).toEqual({});
    expect(claims).not.toHaveProperty('topics');
    expect((claims.exp ?? 0) - (claims.iat ?? 0)).toBe(3600);
  });

  it('reads times', () => {
    expect(['90', '30s', '15m', '1h', '7d'].map(parseDurationSec)).toEqual([90, 30, 900, 3600, 604_800]);
    for (const wrong of ['', '0', '-1', '1.5h', '1w', 'h', '1 h', '1hh']) {
      expect(parseDurationSec(wrong)).toBeUndefined();
    }
  });
});

describe('what sub asks for and prints', () => {
  it('reads topics with positions, and asks for snapshots of the others', () => {
    expect(readRequests(['item.1@k3f9:7', 'news.*', 'item.1@k3f9:9'], 5)).toEqual([
      { topic: 'item.1', epoch: 'k3f9', offset: 9 },
      { topic: 'news.*', last: 5 },
    ]);
  });

  it('passes data through as it was written, on one line', () => {
    const data = { format: 'json', text: '{"n":9007199254740993,\r\n "x": 1.0,\n"s":"a\\nb"}' } as const;
    expect(messageLine({ type: 'msg', topic: 'item.1', offset: 4, data })).toBe(
      '{"topic":"item.1","offset":4,"data":{"n":9007199254740993, "x": 1.0,"s":"a\\nb"}}',
    );
    expect(messageLine({ type: 'msg', topic: 'news.a', data: { format: 'json', text: '1' } })).toBe(
      '{"topic":"news.a","data":1}',
    );
    expect(directLine(3, data)).toMatch(/^\{"direct":3,"data":\{.*\}\}$/);
    expect(directLine(undefined, { format: 'json', text: '1' })).toBe('{"direct":null,"data":1}');
  });
});

describe('plan', () => {
  it('prints every input, every cost with its source, and the plan', async () => {
    const { code, stderr, stdout } = await run(['plan', '--users', '200000', '--topics-per-user=4']);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/\| users +\| 200000 +\| flag /);
    expect(stdout).toMatch(/\| bytes +\| 200 +\| default /);
    expect(stdout).toMatch(/\| handshakeUs .*(assumed|measured|derived);/);
    expect(stdout).toMatch(/\| nodes +\| +\d+ \|/);
  });

  it('prints JSON with what was asked for besides', async () => {
    const args = ['plan', '--json', '--simulate', '--seed', '3', '--what-if', 'users=1000..100000:3'];
    const { code, stdout } = await run(args);
    expect(code).toBe(0);
    const plan = JSON.parse(stdout) as {
      readonly figures: readonly { readonly key: string; readonly value: number }[];
      readonly simulation: { readonly seed: number };
      readonly whatIf: { readonly steps: readonly { readonly figures: Record<string, number> }[] };
    };
    expect(plan.figures.find(({ key }) => key === 'sessions')?.value).toBe(1_000_000);
    expect(plan.simulation.seed).toBe(3);
    expect(plan.whatIf.steps.map(({ figures }) => figures['sessions'])).toEqual([1000, 10_000, 100_000]);
  });

  it.each([
    [['--users', '-5'], 'users: Expected a whole number'],
    [['--users', 'NaN'], 'users: Expected a whole number'],
    [['--bytes', '1.5'], 'bytes: Expected a whole number'],
    [['--userz', '5'], "unknown option '--userz'"],
    [['launch.json'], 'too many arguments'],
    [['--file', '/nowhere/launch.json'], 'cannot read /nowhere/launch.json'],
    [['--file', 'package.json'], 'package.json: unknown name, '],
    [['--costs', 'package.json'], 'package.json: not a file of costs'],
    [['--from', 'package.json'], 'package.json: not the result of a scenario'],
    [['--check', 'package.json'], 'package.json: not the result of a scenario'],
    [['--what-if', 'users=2..1'], 'Expected a range upwards'],
    [['--seed', '-1'], 'Expected a whole number'],
  ])('refuses %j', async (args, message) => {
    const { code, stderr, stdout } = await run(['plan', ...args]);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
    expect(stderr.trim()).not.toContain('\n');
  });

  it('ends with 1 when no number of servers is enough', async () => {
    const { code, stderr } = await run(['plan', '--messages-per-s', '10000000', '--topics', '1']);
    expect(code).toBe(1);
    expect(stderr).toContain('no number of nodes is enough');
  });
});
