import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startFleet, type Fleet } from '../../bench/fleet/fleet.js';
import type { FleetOptions } from '../../bench/fleet/fleet-plan.js';
import { openPublisher, type Publisher, type PublisherOptions } from '../../bench/fleet/publisher.js';
import { fastPublisherEnv } from '../../bench/floor/subjects.js';
import { startNode, type RunningNode } from '../../bench/demo/node-process.js';
import { parseResult } from '../../bench/result/result.js';
import { encodeJsonClient } from '../../protocol/codec-json.js';
import { markedPayload } from '../../bench/fleet/marker.js';
import { mainPath, runCli } from '../support/child.js';

const topics = ['item.1', 'item.2', 'live.1'];
const env = { TOPICAST_HOST: '127.0.0.1', TOPICAST_PORT: '0', TOPICAST_DRAIN_SEC: '0', ...fastPublisherEnv };

let node: RunningNode;
const opened: { stop(): Promise<void> }[] = [];

beforeAll(async () => {
  node = await startNode(mainPath, env);
});
afterAll(async () => {
  for (const one of opened) await one.stop();
  await node.stop();
});

async function fleetOf(options: Partial<FleetOptions>): Promise<Fleet> {
  const fleet = await startFleet({ urls: [node.url], sockets: 60, groups: [topics], ...options });
  opened.push(fleet);
  await fleet.open({ perSec: 2000, atOnce: 20 });
  return fleet;
}

async function publisherOf(options: Partial<PublisherOptions>): Promise<Publisher> {
  const publisher = await openPublisher({ url: node.url, bytes: 80, topics, ...options });
  opened.push({ stop: async () => publisher.close() });
  return publisher;
}

const clean = {
  lost: 0,
  doubled: 0,
  disorder: 0,
  foreign: 0,
  gaps: 0,
  notRecovered: 0,
  resyncs: 0,
  faults: [],
};

/** Runs a scenario that must succeed. */
async function benchOf(name: string, args: readonly string[]) {
  const folder = await mkdtemp(join(tmpdir(), 'topicast-bench-'));
  const file = join(folder, `${name}.json`);
  const child = runCli(['bench', name, ...args, '--json', file]);
  expect(await child.exited, child.stderr).toBe(0);
  const result = parseResult(await readFile(file, 'utf8'));
  await rm(folder, { recursive: true });
  return { child, result };
}

describe('the command', () => {
  it('measures a small fanout, counts exactly, and leaves a result that can be read', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'topicast-bench-'));
    const file = join(folder, 'deep', 'fanout.json');
    const args = ['--sockets', '100', '--seconds', '2', '--warm-up', '1', '--rounds', '1', '--json', file];
    const child = runCli(['bench', 'fanout', ...args]);
    expect(await child.exited, child.stderr).toBe(0);
    const result = parseResult(await readFile(file, 'utf8'));
    await rm(folder, { recursive: true });
    expect(result).toMatchObject({ scenario: 'fanout', faults: [], doubts: [] });
    expect(result.settings).toMatchObject({ sockets: 100, seconds: 2, codec: 'json' });
    expect(result.rows.map((row) => [row.labels['subject'], row.figures.deliveries])).toEqual([
      ['bare', 40_000],
      ['node-live', 40_000],
      ['node-durable', 40_000],
    ]);
    for (const { figures, latency } of result.rows) {
      expect(figures.cpuUsPerDelivery).toBeGreaterThan(0);
      expect(figures.p99Ms).toBeGreaterThan(0);
      expect(latency?.at(-1)?.[1]).toBeGreaterThan(0);
    }
    expect(child.stdout).toContain('against bare µWS');
  });

  it('kills a node, sees its sessions come back with nothing missing, and counts what that asks of JetStream', async () => {
    const { child, result } = await benchOf(
      'resume',
      '--sockets 300 --topics 10 --rate 200 --ring 1 --warm-up 1'.split(' '),
    );
    expect(result, child.stderr).toMatchObject({ faults: [], doubts: [], settings: { sessionsCut: 100 } });
    const { figures } = result.rows[0]!;
    // Nodes that remember one message have to read the rest.
    expect(figures.jetStreamRequestsPerTopic).toBeGreaterThan(0);
    expect(figures.seconds).toBeGreaterThan(0);
    // Every one of 300 sessions has two of the ten topics: a message goes to 60 of them.
    expect(figures.deliveries! % 60).toBe(0);
    expect(figures.deliveries).toBeGreaterThan(200 * 60);
  });

  it('measures a launch in small on a cluster: deliveries, and messages of NATS', async () => {
    const { child, result } = await benchOf(
      'mixed',
      '--users 200 --topics 30 --rate 100 --seconds 4 --settle 1'.split(' '),
    );
    expect(result, child.stderr).toMatchObject({ faults: [], doubts: [] });
    expect(result.settings).toMatchObject({
      users: 200,
      topics: 30,
      topicsPerUser: 8,
      rate: 100,
      bytes: 100,
    });
    const { figures } = result.rows[0]!;
    expect(figures.deliveries).toBeGreaterThan(0);
    expect(Math.round(figures.natsInPerMessage!)).toBe(1);
    expect(figures.natsOutPerMessage).toBeGreaterThan(0.9);
    expect(figures.redisCommandsPerMessage).toBeLessThan(0.5);
  });

  it('opens many sockets with the native client, sends to all of them, and counts exactly', async () => {
    const { child, result } = await benchOf(
      'million',
      '--sockets 600 --per-node 300 --settle 1 --idle 1 --broadcasts 2 --redis one'.split(' '),
    );
    expect(result, child.stderr).toMatchObject({ faults: [], doubts: [], settings: { nodes: 2 } });
    const figures = new Map(result.rows.map((row) => [row.labels['what'], row.figures]));
    expect(figures.get('opening')).toMatchObject({ sockets: 600 });
    expect(figures.get('memory')?.redisBytesPerUser).toBeGreaterThan(100);
    for (const number of [1, 2]) expect(figures.get(`message ${number}`)).toMatchObject({ deliveries: 600 });
  });

  it('refuses what the machine has no memory for, and says how much it has', async () => {
    const child = runCli(['bench', 'million', '--sockets', '10000000']);
    expect(await child.exited).toBe(1);
    expect(child.stderr).toMatch(/needs \d+\.\d GB, \d+\.\d are available: --sockets \d+/);
  });

  it('says before it measures that the result cannot be written', async () => {
    for (const file of ['/proc/none/fanout.json', '/proc/fanout.json', tmpdir(), '']) {
      const child = runCli(['bench', 'fanout', '--json', file]);
      expect(await child.exited, file).toBe(1);
      expect(child.stderr).toMatch(/^error: cannot write [^\n]+\n$/);
    }
  });

  it('refuses more sockets than there are descriptors', async () => {
    const command = `ulimit -n 500 && exec ${process.execPath} ${mainPath} bench fanout --sockets 1000`;
    const { stderr, status } = spawnSync('/bin/sh', ['-c', command], { encoding: 'utf8' });
    expect(stderr).toContain(
      'a server would have to hold 1000 sockets, and a process may hold 500 descriptors',
    );
    expect(status).toBe(1);
  });

  it('lists the scenarios, and refuses what it does not know', async () => {
    const list = runCli(['bench']);
    expect(await list.exited).toBe(0);
    expect(list.stdout).toContain('fanout [options]');
    const unknown = runCli(['bench', 'nothing']);
    expect(await unknown.exited).toBe(2);
    expect(unknown.stderr).toContain('there is no scenario nothing; there are fanout, compare');
    for (const args of [
      ['fanout', '--sockets', '1'],
      ['fanout', '--nothing'],
    ]) {
      expect(await runCli(['bench', ...args]).exited, args.join(' ')).toBe(2);
    }
  });
});

describe.each(['json', 'msgpack'] as const)('a fleet with %s', (codec) => {
  it('resumes what it has cut without a hole or a repeat', async () => {
    const fleet = await fleetOf({ codec, processes: 2, users: { prefix: 'u' } });
    const publisher = await publisherOf({ codec: codec === 'json' ? 'msgpack' : 'json' });
    await publisher.send(300, 1000);
    expect((await fleet.delivered(300 * 60)).messages).toBe(300 * 60);

    const dropped = await fleet.drop(0.5);
    expect(dropped.ready).toBe(30);
    await publisher.send(300, 3000);
    await fleet.delivered(300 * 60 + 300 * 30);
    const back = await fleet.open({ perSec: 2000, atOnce: 20 });
    expect(back.ready).toBe(60);
    await publisher.send(300, 3000);
    // The hundred of the live topic that were sent meanwhile do not come back, and nobody calls them lost.
    const due = 900 * 60 - 100 * 30;
    const state = await fleet.delivered(due);
    expect(state).toMatchObject({ messages: due, closed: {}, ...clean });
    expect(publisher.refused).toEqual([]);
    expect((await fleet.close()).ready).toBe(0);
  });

  it('takes latencies of the probes, and only theirs', async () => {
    const fleet = await fleetOf({ codec, probes: 4, napMs: 20, groups: [['live.probes']] });
    const publisher = await publisherOf({ codec, topics: ['live.probes'] });
    await fleet.begin();
    await publisher.send(50, 1000);
    await fleet.delivered(50 * 60);
    const { cpuShares, latencies, messagesPerRead, state } = await fleet.measured();
    expect(latencies.count).toBe(50 * 4);
    expect(cpuShares).toHaveLength(3);
    expect(messagesPerRead).toBeGreaterThan(0);
    expect(state).toMatchObject({ messages: 50 * 60, ...clean });
  });
});

describe('the checker', () => {
  /** A publisher whose numbers are these, one after the other. */
  function misnumbered(topic: string, numbers: readonly number[]): Promise<Publisher> {
    return publisherOf({
      topics: [topic],
      wrap: ({ number }) => {
        const data = markedPayload('json', { dueUs: 1, number: numbers[number] ?? -1 }, 80);
        return encodeJsonClient({ type: 'publish', topic, data });
      },
    });
  }

  it('finds a hole, a repeat and a late message on every socket', async () => {
    for (const [numbers, found] of [
      [[0, 1, 3, 4], { lost: 60 }],
      [[0, 1, 1, 2], { doubled: 60 }],
      [[0, 2, 1, 3], { disorder: 60 }],
      [[2, 3, 4, 5], { lost: 120 }],
    ] as const) {
      const topic = `checked.${numbers.join('-')}`;
      const fleet = await fleetOf({ groups: [[topic]], firstNumber: 0 });
      const publisher = await misnumbered(topic, numbers);
      await publisher.send(4, 1000);
      expect(await fleet.delivered(4 * 60)).toMatchObject({ messages: 4 * 60, ...clean, ...found });
      await fleet.stop();
    }
  });

  it('tells of topics that were refused and of sockets that the server has closed', async () => {
    const refused = await startFleet({ urls: [node.url], sockets: 2, groups: [['not..a.topic']] });
    opened.push(refused);
    expect((await refused.open()).faults.join()).toContain('invalid_topic');

    const brief = await startNode(mainPath, env);
    const fleet = await startFleet({ urls: [brief.url], sockets: 5, groups: [['a.b']], comeBack: false });
    opened.push(fleet);
    await fleet.open();
    await brief.stop();
    await expect.poll(async () => (await fleet.state()).closed).toEqual({ 4000: 5 });
    await expect(fleet.open()).rejects.toThrow('5 of 5 sockets could not be opened: connect ECONNREFUSED');
  });

  it('gives up on a server that takes connections and says nothing', async () => {
    // Sockets that are left open are reset in the end.
    const silent = createServer((socket) => void socket.on('error', () => socket.destroy()));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    opened.push({ stop: async () => void silent.close() });
    const { port } = silent.address() as AddressInfo;
    const urls = [`http://127.0.0.1:${port}`];
    const fleet = await startFleet({ urls, sockets: 5, groups: [['a.b']], silentMsMax: 500 });
    opened.unshift(fleet);
    await expect(fleet.open()).rejects.toThrow('5 sockets have had no answer for 0.5 s; 0 of 5 are open');
  });

  it('signs tokens for a node that asks for them, waits when told to, and goes to another node when one is gone', async () => {
    const secret = 'a secret of at least thirty-two bytes';
    const strict = { ...env, TOPICAST_JWT_SECRET: secret, TOPICAST_CONNECT_RATE: '40' };
    const [first, second] = [await startNode(mainPath, strict), await startNode(mainPath, strict)];
    opened.push(first, second);
    const users = { prefix: 'u', secret };
    const urls = [first.url, second.url];
    const fleet = await startFleet({ urls, sockets: 100, groups: [['a.b']], users, comeBack: true });
    opened.push(fleet);
    const state = await fleet.open({ perSec: 5000, atOnce: 100, retryRefused: true });
    expect(state).toMatchObject({ ready: 100, failed: 0, closed: {}, faults: [] });
    expect(state.refused).toBeGreaterThan(0);

    await first.stop();
    await expect.poll(async () => (await fleet.state()).ready, { timeout: 60_000 }).toBe(100);
    expect((await fleet.state()).closed).toEqual({ 4000: 50 });
  });
});
