import { connect as connectNats, type NatsConnection } from 'nats';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createNatsCluster, type NatsCluster, type NatsClusterOptions } from '../../broker/cluster-nats.js';
import type { CommandHandler, NodeLoad } from '../../broker/cluster.js';
import { NatsLink } from '../../broker/nats-link.js';
import { clusterConformance, echo, load } from '../conformance/cluster-suite.js';
import { startNats, type NatsServers } from '../support/servers/nats-kit.js';
import { eventually, Signal } from '../support/signal.js';

let servers: NatsServers;
let watcher: NatsConnection;
/** How many questions to all there were in a test. */
let questions = 0;
let prefix = '';
let prefixes = 0;

beforeAll(async () => {
  servers = await startNats({ jetstream: false });
  watcher = await connectNats({ servers: [...servers.urls] });
});
afterAll(async () => {
  await watcher.close();
  await servers.stop();
});

interface Member {
  readonly id: string;
  readonly cluster: NatsCluster;
  readonly link: NatsLink;
  /** How often it was told that nodes came or went. */
  readonly changes: () => number;
  readonly signal: Signal;
  /** The subjects of what it has published, without its beacons. */
  readonly published: readonly string[];
}

const members: Member[] = [];
afterEach(async () => {
  for (const { cluster, link } of members.splice(0)) {
    await cluster.stop();
    await link.close();
  }
});

/** A fresh prefix, on which questions are counted. Nobody but nodes may listen for commands to a node, or it would seem to exist. */
async function newPrefix(): Promise<void> {
  prefix = `t${++prefixes}`;
  questions = 0;
  watcher.subscribe(`${prefix}.nodes.ask`, { callback: () => (questions += 1) });
  await watcher.flush();
}

async function join(
  id: string,
  options: Partial<NatsClusterOptions> & { describe?: () => NodeLoad; handle?: CommandHandler } = {},
): Promise<Member> {
  const { describe: describeNode = () => load, handle = echo, ...rest } = options;
  const link = await NatsLink.open({ servers: servers.urls, name: id });
  const published: string[] = [];
  const publish = link.nc.publish.bind(link.nc);
  link.nc.publish = (subject, ...others) => {
    if (subject !== `${prefix}.nodes`) published.push(subject);
    publish(subject, ...others);
  };
  const cluster = createNatsCluster({ link, prefix, nodeId: id, ...rest });
  const signal = new Signal();
  let changes = 0;
  cluster.watch(() => {
    changes++;
    signal.notify();
  });
  const member = { id, cluster, link, changes: () => changes, signal, published };
  members.push(member);
  await cluster.start(describeNode, handle);
  return member;
}

const idsOf = ({ cluster }: Member): string[] => cluster.nodes().map(({ id }) => id);

/** Waits until a member sees exactly these nodes, itself first. */
function sees(member: Member, ids: readonly string[]): Promise<void> {
  return member.signal.until(`${member.id} sees ${ids.join()}`, () => {
    const [self, ...others] = idsOf(member);
    return JSON.stringify([self, ...others.sort()]) === JSON.stringify(ids);
  });
}

/** Ends a member as a crash does: its connection goes, and nothing is said. */
async function crash(member: Member): Promise<void> {
  await member.link.nc.close();
}

clusterConformance('NATS', async (nodeId) => {
  await newPrefix();
  const link = await NatsLink.open({ servers: servers.urls, name: nodeId });
  // Ids that were never seen are dead at once.
  const cluster = createNatsCluster({ link, prefix, nodeId, deadAfterMs: -1 });
  return {
    cluster,
    dispose: async () => {
      await cluster.stop();
      await link.close();
    },
  };
});

describe('nodes', () => {
  test('see each other soon after they start, with what they tell of themselves', async () => {
    await newPrefix();
    // Beacons this seldom: they introduce themselves.
    const a = await join('a-1', { beaconMs: 60_000 });
    const b = await join('b-1', { beaconMs: 60_000, describe: () => ({ ...load, connections: 17 }) });
    await Promise.all([sees(a, ['a-1', 'b-1']), sees(b, ['b-1', 'a-1'])]);
    expect(a.cluster.nodes()[1]).toEqual({
      ...load,
      connections: 17,
      id: 'b-1',
      seenAt: expect.any(Number) as number,
    });
    expect(a.changes()).toBe(1);
  });

  test('are told when one begins to drain', async () => {
    await newPrefix();
    let draining = false;
    const a = await join('a-1');
    await join('b-1', { beaconMs: 20, describe: () => ({ ...load, draining }) });
    await sees(a, ['a-1', 'b-1']);
    expect(a.changes()).toBe(1);
    draining = true;
    await a.signal.until('a second change', () => a.changes() === 2);
    expect(a.cluster.nodes()[1]).toMatchObject({ draining: true });
  });

  test('go with a goodbye at once', async () => {
    await newPrefix();
    const a = await join('a-1', { deadAfterMs: 3_600_000 });
    const b = await join('b-1');
    await sees(a, ['a-1', 'b-1']);
    await b.cluster.stop();
    await sees(a, ['a-1']);
    expect(a.cluster.isDead('b-1')).toBe(true);
  });

  test('go by silence when they crash', async () => {
    await newPrefix();
    const a = await join('a-1', { beaconMs: 20, deadAfterMs: 300 });
    const b = await join('b-1', { beaconMs: 20 });
    await sees(a, ['a-1', 'b-1']);
    expect(a.cluster.isDead('b-1')).toBe(false);
    await crash(b);
    await sees(a, ['a-1']);
    expect(a.cluster.isDead('b-1')).toBe(true);
  });
});

describe('commands', () => {
  test('are answered by the node they are for', async () => {
    await newPrefix();
    const a = await join('a-1');
    await join('b-1');
    expect(await a.cluster.ask('b-1', { n: [1, 'ü'] })).toEqual({ told: { n: [1, 'ü'] } });
    expect(await a.cluster.ask('b-1', 'nothing')).toBeNull();
    await expect(a.cluster.ask('b-1', 'fail')).rejects.toMatchObject({
      code: 'queue_full',
      message: 'no room',
    });
    const fault = a.cluster.ask('b-1', 'break');
    await expect(fault).rejects.toMatchObject({ code: 'internal' });
    await expect(fault).rejects.not.toThrow(/secret/);
  });

  test('to one node of one turn travel in one message, and are answered in one', async () => {
    await newPrefix();
    const a = await join('a-1', { beaconMs: 60_000 });
    const b = await join('b-1', { beaconMs: 60_000 });
    await Promise.all([sees(a, ['a-1', 'b-1']), sees(b, ['b-1', 'a-1'])]);
    const answers = await Promise.all(Array.from({ length: 500 }, (_, i) => a.cluster.ask('b-1', i)));
    expect(answers).toEqual(Array.from({ length: 500 }, (_, i) => ({ told: i })));
    expect([a.published.length, b.published.length]).toEqual([1, 1]);
    await a.cluster.ask('b-1', 'another turn');
    expect([a.published.length, b.published.length]).toEqual([2, 2]);
    expect(a.published).toEqual(Array(2).fill(`${prefix}.node.b-1`));
  });

  test('and answers that are larger than a message are split, never cut', async () => {
    await newPrefix();
    const a = await join('a-1');
    await join('b-1', { handle: async (n) => (typeof n === 'number' ? 'ä€😀'.repeat(n) : String(n).length) });
    expect(await a.cluster.ask('b-1', 400_000)).toBe('ä€😀'.repeat(400_000));
    const large = Array.from({ length: 5 }, () => a.cluster.ask('b-1', 'x'.repeat(600_000)));
    expect(await Promise.all(large)).toEqual(Array(5).fill(600_000));
    await expect(a.cluster.ask('b-1', 'x'.repeat(2_000_000))).rejects.toMatchObject({
      code: 'payload_too_large',
    });
  });

  test('to a node that does not exist are answered at once', async () => {
    await newPrefix();
    const a = await join('a-1', { askMsMax: 3_600_000 });
    expect(await a.cluster.ask('nobody-1', 'x')).toBeUndefined();
    expect(a.cluster.isDead('nobody-1')).toBe(true);
  });

  test('to a node that has crashed show that it has', async () => {
    await newPrefix();
    const a = await join('a-1', { deadAfterMs: 3_600_000, askMsMax: 3_600_000 });
    const b = await join('b-1');
    await sees(a, ['a-1', 'b-1']);
    await crash(b);
    expect(await a.cluster.ask('b-1', 'x')).toBeUndefined();
    expect([idsOf(a), a.cluster.isDead('b-1')]).toEqual([['a-1'], true]);
  });

  test('that were on their way to a node when it crashed are not waited for in vain', async () => {
    await newPrefix();
    const a = await join('a-1', { askMsMax: 3_600_000 });
    const taken = new Signal();
    let commands = 0;
    const handle: CommandHandler = () => {
      commands++;
      taken.notify();
      return new Promise(() => undefined);
    };
    const b = await join('b-1', { handle });
    const answer = a.cluster.ask('b-1', 'x');
    await taken.until('it has come', () => commands > 0);
    await crash(b);
    expect(await answer).toBeUndefined();
    expect(a.cluster.isDead('b-1')).toBe(true);
  });

  test('to a node that hangs fail after a while, and it is not taken for dead', async () => {
    await newPrefix();
    const a = await join('a-1', { askMsMax: 50 });
    await join('b-1', { handle: () => new Promise(() => undefined) });
    await sees(a, ['a-1', 'b-1']);
    await expect(a.cluster.ask('b-1', 'x')).rejects.toMatchObject({ code: 'unavailable' });
    expect(a.cluster.isDead('b-1')).toBe(false);
  });
});

describe('a question to all', () => {
  test('of a newcomer has the answers of nodes that it has not heard of yet', async () => {
    await newPrefix();
    // As in a start: asked before any other node can have introduced itself.
    await join('a-1', { beaconMs: 60_000, handle: async () => 'a' });
    await join('b-1', { beaconMs: 60_000, handle: async () => 'b' });
    const c = await join('c-1', { handle: async () => 'c' });
    expect([...(await c.cluster.askAll('x', 3_600_000))].sort()).toEqual(['a', 'b', 'c']);
  });

  test('ends when all have answered, each once, in one message', async () => {
    await newPrefix();
    const all = [];
    for (const id of ['a-1', 'b-1', 'c-1']) {
      all.push(await join(id, { beaconMs: 20, handle: async () => id }));
    }
    const [a] = all;
    await sees(a!, ['a-1', 'b-1', 'c-1']);
    const answers = await a!.cluster.askAll('who', 3_600_000);
    expect([...answers].sort()).toEqual(['a-1', 'b-1', 'c-1']);
    await watcher.flush();
    expect(questions).toBe(1);
  });

  test('does not wait for one that has crashed, nor for longer than told for one that hangs', async () => {
    await newPrefix();
    const a = await join('a-1', { beaconMs: 20, deadAfterMs: 3_600_000 });
    const b = await join('b-1');
    await join('c-1', {
      handle: async (command) => (command === 'hang' ? new Promise(() => undefined) : 'c'),
    });
    await sees(a, ['a-1', 'b-1', 'c-1']);
    await crash(b);
    // The time would be longer than the test may take.
    expect(await a.cluster.askAll('x', 3_600_000)).toEqual([{ told: 'x' }, 'c']);
    expect(idsOf(a)).toEqual(['a-1', 'c-1']);
    expect(await a.cluster.askAll('hang', 50)).toEqual([{ told: 'hang' }]);
  });

  test('leaves out failures', async () => {
    await newPrefix();
    const a = await join('a-1', { beaconMs: 20, handle: async () => 'fine' });
    await join('b-1');
    await sees(a, ['a-1', 'b-1']);
    expect(await a.cluster.askAll('fail', 3000)).toEqual(['fine']);
  });
});

test('garbage on the subjects is counted and does no harm', async () => {
  await newPrefix();
  const warnings: string[] = [];
  const log = { warn: (_fields: object, message: string) => void warnings.push(message) };
  const a = await join('a-1', { log });
  await join('b-1');
  await sees(a, ['a-1', 'b-1']);
  const before = a.cluster.ignored;
  const beacon = { ...load, id: 'c-1' };
  const garbage = [
    ['nodes', ''],
    ['nodes', '{'],
    ['nodes', 'null'],
    ['nodes', '[]'],
    ['nodes', new Uint8Array([0xff, 0xfe, 0])],
    ['nodes', JSON.stringify({ ...beacon, id: 'a.b' })],
    ['nodes', JSON.stringify({ ...beacon, id: 7 })],
    ['nodes', JSON.stringify({ ...beacon, connections: '7' })],
    ['nodes', JSON.stringify({ ...beacon, channels: -1 })],
    ['nodes', JSON.stringify({ ...beacon, draining: 1 })],
    ['nodes', JSON.stringify({ ...beacon, url: 'x'.repeat(3000) })],
    ['nodes', JSON.stringify({ goodbye: true })],
    ['node.a-1', ''],
    ['node.a-1', 'nonsense'],
    ['node.a-1', '{"type":"kick"}'],
    ['nodes.ask', '7'],
  ] as const;
  for (const [subject, body] of garbage) {
    watcher.publish(`${prefix}.${subject}`, body, { reply: '_INBOX.none' });
  }
  // Commands that nobody wants an answer to.
  watcher.publish(`${prefix}.node.a-1`, '["x"]');
  await watcher.flush();
  await eventually('all of it has come', () =>
    Promise.resolve(a.cluster.ignored >= before + garbage.length + 1),
  );
  expect(a.cluster.ignored).toBe(before + garbage.length + 1);
  expect(warnings).toHaveLength(1);
  expect(idsOf(a)).toEqual(['a-1', 'b-1']);
  expect(await a.cluster.ask('b-1', 'still')).toEqual({ told: 'still' });
});

// Last, as it takes the server of the others away.
describe('nodes, later', () => {
  test('are seen again when NATS was away for longer than that', async () => {
    await newPrefix();
    const a = await join('a-1', { beaconMs: 20, deadAfterMs: 1000 });
    const b = await join('b-1', { beaconMs: 20, deadAfterMs: 1000 });
    await Promise.all([sees(a, ['a-1', 'b-1']), sees(b, ['b-1', 'a-1'])]);
    await servers.kill(0);
    await eventually('the links are cut', () => Promise.resolve(!a.link.connected && !b.link.connected));
    await expect(a.cluster.ask('b-1', 'x')).rejects.toMatchObject({ code: 'unavailable' });
    await expect(a.cluster.askAll('x', 1000)).rejects.toMatchObject({ code: 'unavailable' });
    const cutFor = Date.now() + 1500;
    await eventually('it has been away for long', () => Promise.resolve(Date.now() > cutFor));
    expect([idsOf(a), a.cluster.isDead('b-1')]).toEqual([['a-1', 'b-1'], false]);
    await servers.restart(0);
    await eventually('the links are back', () => Promise.resolve(a.link.connected && b.link.connected));
    await eventually('a command reaches the other', async () => {
      return (await a.cluster.ask('b-1', 'x').catch(() => undefined)) !== undefined;
    });
    await sees(a, ['a-1', 'b-1']);
  });
});
