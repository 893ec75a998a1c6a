import { afterEach, describe, expect, it } from 'vitest';
import { runCli, type Child } from '../support/child.js';
import { freePort, startNode, type NodeProcess } from '../support/node-process.js';

const secret = 'end-to-end secret that is long enough';
const guarded = { TOPICAST_JWT_SECRET: secret };

const toStop: (NodeProcess | Child)[] = [];
afterEach(async () => {
  for (const process of toStop.splice(0)) {
    if ('kill' in process) await process.kill();
    else process.signal('SIGKILL');
  }
});

async function node(env: Record<string, string> = {}): Promise<NodeProcess> {
  const started = await startNode(env);
  toStop.push(started);
  return started;
}

/** Starts `topicast sub` and waits until it is attached: a message that follows is not missed. */
async function sub(url: string, args: readonly string[], env: Record<string, string> = {}): Promise<Child> {
  const child = runCli(['sub', ...args], { TOPICAST_URL: url, ...env });
  toStop.push(child);
  await child.waitFor('stderr', /^connected: .*$/m);
  await subscribers(url, args[0] ?? '', 1, env);
  return child;
}

/** Asks until the node counts that many subscribers of a topic; each answer is awaited, nothing is timed. */
async function subscribers(
  url: string,
  topic: string,
  least: number,
  env: Record<string, string>,
): Promise<void> {
  const authorization = env['TOPICAST_TOKEN'] === undefined ? undefined : `Bearer ${env['TOPICAST_TOKEN']}`;
  for (let count = 0; count < least;) {
    const response = await fetch(`${url}/v1/topics/${topic}`, {
      ...(authorization === undefined ? {} : { headers: { authorization } }),
    });
    if (!response.ok) throw new Error(`GET topic: ${response.status} ${await response.text()}`);
    count = ((await response.json()) as { subscribers: number }).subscribers;
  }
}

async function finished(args: readonly string[], env: Record<string, string> = {}, input?: string) {
  const child = runCli(args, env);
  if (input !== undefined) child.input(input);
  const code = await child.exited;
  return { code, stdout: child.stdout, stderr: child.stderr };
}

async function token(...grants: string[]): Promise<string> {
  const made = await finished(['token', ...grants], guarded);
  expect(made).toMatchObject({ code: 0, stderr: '' });
  return made.stdout.trim();
}

describe('topicast', () => {
  it('publishes what a subscriber prints, byte for byte, and ends with 0 at Ctrl-C', async () => {
    const { url } = await node();
    const listener = await sub(url, ['item.1']);
    const json = '{"n":9007199254740993, "x":1.0}';
    const published = await finished(['pub', 'item.1', json], { TOPICAST_URL: url });
    expect(published).toMatchObject({ code: 0, stderr: '' });
    const { epoch, offset } = JSON.parse(published.stdout) as { epoch: string; offset: number };
    await listener.waitFor('stdout', /\n/);
    expect(listener.stdout).toBe(`{"topic":"item.1","offset":${offset},"data":${json}}\n`);
    expect(epoch).toMatch(/^[A-Za-z0-9_-]+$/);
    listener.signal('SIGINT');
    expect(await listener.exited).toBe(0);
  });

  it('reads standard input, and does not publish twice under one id', async () => {
    const { url } = await node();
    const env = { TOPICAST_URL: url };
    const first = await finished(['pub', 'item.2', '-', '--id', 'once'], env, '[1,\n2]\n');
    const second = await finished(['pub', 'item.2', '--id', 'once'], env, '[1,\n2]\n');
    expect([first.code, second.code]).toEqual([0, 0]);
    expect(JSON.parse(second.stdout)).toMatchObject({
      duplicate: true,
      offset: (JSON.parse(first.stdout) as { offset: number }).offset,
    });
  });

  it('prints stored messages after a position, and the last n', async () => {
    const { url } = await node();
    const env = { TOPICAST_URL: url };
    const positions: { epoch: string; offset: number }[] = [];
    for (const n of [1, 2, 3]) {
      const { stdout } = await finished(['pub', 'item.3', `${n}`], env);
      positions.push(JSON.parse(stdout) as { epoch: string; offset: number });
    }
    const after = runCli(['sub', `item.3@${positions[0]?.epoch}:${positions[0]?.offset}`], env);
    const last = runCli(['sub', 'item.3', '--last', '1'], env);
    toStop.push(after, last);
    await after.waitFor('stdout', /"data":2\}\n.*"data":3\}\n/);
    await last.waitFor('stdout', /"data":3\}\n/);
    expect(after.stdout).not.toContain('"data":1');
    expect(last.stdout).not.toContain('"data":2');
  });

  it('reconnects when the node comes back, and hears what follows', async () => {
    const port = { TOPICAST_PORT: String(await freePort()) };
    const first = await node(port);
    const listener = await sub(first.url, ['item.4']);
    await first.kill();
    await listener.waitFor('stderr', /^reconnecting in .*$/m);
    const before = listener.stderr.length;
    const second = await node(port);
    await listener.waitFor('stderr', /^connected: .*$/m, before);
    await subscribers(second.url, 'item.4', 1, {});
    await finished(['pub', 'item.4', '"back"'], { TOPICAST_URL: second.url });
    await listener.waitFor('stdout', /"data":"back"\}\n/);
  });

  it('prints direct messages and acknowledges them', async () => {
    const { url } = await node(guarded);
    const alice = { TOPICAST_TOKEN: await token('--sub', 'alice', '--can-sub', '>', '--admin') };
    const shop = { TOPICAST_URL: url, TOPICAST_TOKEN: await token('--sub', 'shop', '--can-push', '*') };
    const queued = await finished(['push', 'alice', '{"hello":1}'], shop);
    expect(queued.code).toBe(0);
    expect(JSON.parse(queued.stdout)).toMatchObject({ status: 'queued' });
    const listener = await sub(url, ['item.5'], alice);
    await listener.waitFor('stdout', /\{"direct":\d+,"data":\{"hello":1\}\}\n/);
    listener.signal('SIGTERM');
    expect(await listener.exited).toBe(0);
    const again = await sub(url, ['item.5'], alice);
    await finished(['push', 'alice', '2'], shop);
    await again.waitFor('stdout', /"data":2\}\n/);
    expect(again.stdout).not.toContain('hello');
  });

  it('ends quietly when its reader leaves', async () => {
    const { url } = await node();
    const listener = await sub(url, ['item.6']);
    listener.closeStdout();
    await finished(['pub', 'item.6', '1'], { TOPICAST_URL: url });
    expect(await listener.exited).toBe(0);
    expect(listener.stderr).not.toMatch(/EPIPE|error/);
  });

  it('ends with 1 and one line when it is refused', async () => {
    const { url } = await node(guarded);
    const wrong = await finished(['sub', 'item.7'], { TOPICAST_URL: url, TOPICAST_TOKEN: 'not.a.token' });
    expect(wrong).toMatchObject({ code: 1, stdout: '' });
    expect(wrong.stderr).toMatch(/^error: the token was refused \(401\)[^\n]*\n$/);
    const weak = { TOPICAST_URL: url, TOPICAST_TOKEN: await token('--sub', 'bob') };
    const pub = await finished(['pub', 'item.7', '1'], weak);
    expect(pub).toMatchObject({ code: 1, stdout: '' });
    expect(pub.stderr).toMatch(/^error: refused with 403 forbidden[^\n]*\n$/);
    const sub = await finished(['sub', 'item.7'], weak);
    expect(sub).toMatchObject({ code: 1, stdout: '' });
    expect(sub.stderr).toContain('topic refused: item.7 (forbidden)');
  });

  it('ends with 1 when no node is there', async () => {
    const gone = await node();
    await gone.kill();
    for (const args of [
      ['sub', 'item.8'],
      ['pub', 'item.8', '1'],
    ]) {
      const outcome = await finished(args, { TOPICAST_URL: gone.url });
      expect(outcome).toMatchObject({ code: 1, stdout: '' });
      expect(outcome.stderr).toMatch(/^error: cannot (connect to|reach) [^\n]*: connection refused\n$/);
    }
  });

  it('ends with 2 when it is called wrongly', async () => {
    for (const args of [
      ['sub'],
      ['pub', 'item.*', '1'],
      ['pub', 'item.9', '{'],
      ['nonsense'],
      ['serve', '--nope'],
    ]) {
      const outcome = await finished(args);
      expect(outcome, args.join(' ')).toMatchObject({ code: 2, stdout: '' });
      expect(outcome.stderr).toMatch(/^error: [^\n]+\n$/);
    }
  });

  it('stops a node that is told to, with 0', async () => {
    const started = await node();
    expect(await started.stop()).toBe(0);
  });
});
