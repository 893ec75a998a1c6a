import { beforeEach, describe, expect, it } from 'vitest';
import type { Cluster, NodeBeacon } from '../../broker/cluster.js';
import { BrokerError } from '../../broker/errors.js';
import { createMemoryUsers } from '../../broker/memory-users.js';
import { Direct } from '../../node/direct.js';
import { createLogger } from '../../node/log.js';
import { createMetrics } from '../../node/metrics.js';
import { readCommand, wireCommand, type PeerCommand } from '../../node/peer-commands.js';
import { PeerService } from '../../node/peer-service.js';
import { Peers } from '../../node/peers.js';
import type { Session } from '../../node/session.js';
import type { ServerFrame } from '../../protocol/frames.js';
import type { Payload } from '../../protocol/payload.js';
import { load } from '../conformance/cluster-suite.js';

const log = createLogger('silent');
const payload: Payload = { format: 'json', text: '{"a":1}' };

/** Nodes that share a store and a queue, and commands that travel as JSON from one to the other. */
class Network {
  readonly users = createMemoryUsers({ queueMax: 100 });
  readonly nodes = new Map<string, TestNode>();
  /** Every command that went from one node to another. */
  readonly commands: { readonly to: string; readonly type: string }[] = [];
  /** Nodes that nobody listens for any more, and those that do not answer. */
  readonly crashed = new Set<string>();
  readonly hanging = new Set<string>();
  /** Nodes that the others know to be gone. */
  readonly dead = new Set<string>();
  storeReads = 0;

  add(id: string): TestNode {
    const node = new TestNode(this, id);
    this.nodes.set(id, node);
    return node;
  }

  async tell(to: string, command: unknown): Promise<unknown> {
    const node = this.nodes.get(to);
    if (node === undefined || this.crashed.has(to)) {
      this.dead.add(to);
      return undefined;
    }
    if (this.hanging.has(to)) throw new BrokerError('unavailable', 'no answer in time');
    const text = JSON.stringify(command);
    this.commands.push({ to, type: (command as PeerCommand).type });
    return JSON.parse(JSON.stringify((await node.service.handle(JSON.parse(text))) ?? null)) as unknown;
  }

  /** The cluster as one of the nodes sees it. */
  seenBy(self: string): Cluster {
    const beacon = (id: string): NodeBeacon => ({ ...load, id, seenAt: 0 });
    return {
      start: async () => undefined,
      watch: () => undefined,
      stop: async () => undefined,
      nodes: () =>
        [self, ...[...this.nodes.keys()].filter((id) => id !== self && !this.dead.has(id))].map(beacon),
      isDead: (id) => this.dead.has(id),
      ask: (id, command) => this.tell(id, command),
      askAll: async (command) => {
        const asked = [...this.nodes.keys()].filter((id) => !this.crashed.has(id));
        const answers = await Promise.allSettled(asked.map((id) => this.tell(id, command)));
        return answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
      },
    };
  }
}

interface FakeSession {
  readonly id: string;
  readonly userId: string;
  readonly sent: ServerFrame[];
  readonly closes: string[];
}

class TestNode {
  readonly id: string;
  readonly peers: Peers;
  readonly direct: Direct;
  readonly service: PeerService;
  readonly sessions = new Map<string, FakeSession>();
  readonly blocked: [string, number][] = [];
  readonly subscribed: string[] = [];
  readonly #network: Network;

  constructor(network: Network, id: string) {
    this.id = id;
    this.#network = network;
    const { queue, sessions: store } = network.users;
    this.peers = new Peers(network.seenBy(id), log);
    this.direct = new Direct({
      queue,
      store: new Proxy(store, {
        get: (target, key) => {
          if (key === 'sessionsOf') network.storeReads++;
          const value: unknown = Reflect.get(target, key);
          return typeof value === 'function' ? (value.bind(target) as unknown) : value;
        },
      }),
      nodeId: id,
      peers: this.peers,
      sessionOf: (sessionId) => this.sessions.get(sessionId) as Session | undefined,
      counters: createMetrics().counters,
      log,
    });
    this.service = new PeerService({
      connections: { all: () => this.sessions.values() as IterableIterator<Session> },
      subscriptions: {
        subscribe: (session, requests) => {
          this.subscribed.push(...requests.map(({ topic }) => `${session.id} ${topic}`));
        },
        unsubscribe: (session, topics) =>
          void this.subscribed.push(...topics.map((t) => `${session.id} -${t}`)),
      },
      channels: { subscribersOf: () => this.sessions.size },
      direct: this.direct,
      authenticator: {
        blockToken: (tokenId, expSec) => void this.blocked.push([tokenId, expSec]),
        blockedTokens: () => this.blocked.map(([tokenId, expSec]) => ({ id: tokenId, expSec })),
      },
      stats: () => ({ id, counters: {}, closed: {}, topics: [] }),
      log,
    });
  }

  /** A session as it is after its registration. */
  async connect(
    userId: string,
    number: number,
    { topics = [] as string[], expSec = 99 } = {},
  ): Promise<FakeSession> {
    const session = {
      id: `${this.id}.${number}`,
      userId,
      principal: { tokenId: `token-${this.id}.${number}`, expSec },
      format: 'json',
      isOpen: true,
      isClosed: false,
      isStream: false,
      hintMissed: false,
      directSeen: 0,
      attachments: [{ members: topics.map((filter) => ({ filter })) }],
      serverTopics: undefined,
      sent: [] as ServerFrame[],
      closes: [] as string[],
      send: (frame: ServerFrame) => void session.sent.push(frame),
      close: (why: string) => void session.closes.push(why),
      holdFrame: () => false,
    };
    this.sessions.set(session.id, session);
    const record = { id: session.id, userId, login: 0, active: 0 };
    const { newest, pending } = await this.#network.users.sessions.register(record);
    this.direct.deliverPending(session as unknown as Session, pending, newest);
    return session;
  }
}

let network: Network;
let a: TestNode;
let b: TestNode;
beforeEach(() => {
  network = new Network();
  a = network.add('a-1');
  b = network.add('b-1');
});

describe('a queued message', () => {
  it('reaches the sessions of all nodes with one command a node', async () => {
    const sessions = [await a.connect('u', 1), await b.connect('u', 1), await b.connect('u', 2)];
    const { id, sessions: count } = await a.direct.push('u', payload, 60);
    expect(count).toBe(3);
    for (const { sent } of sessions) expect(sent).toEqual([{ type: 'direct', id, data: payload }]);
    expect(network.commands).toEqual([{ to: 'b-1', type: 'hint' }]);
    await a.direct.push('u', payload, 60);
    expect(sessions.map(({ sent }) => sent.length)).toEqual([2, 2, 2]);
  });

  it('is not counted for a node that has crashed, from the first push on, nor tried there again', async () => {
    await b.connect('u', 1);
    const here = await a.connect('u', 1);
    network.crashed.add('b-1');
    expect(await a.direct.push('u', payload, 60)).toMatchObject({ sessions: 1 });
    expect(a.peers.living([{ id: 'b-1.1' }, { id: 'a-1.1' }])).toEqual([{ id: 'a-1.1' }]);
    expect(await a.direct.push('u', payload, 60)).toMatchObject({ sessions: 1 });
    expect(here.sent).toHaveLength(2);
  });

  it('is not counted for a session that has gone, nor for a node that does not answer, and is not refused', async () => {
    await b.connect('u', 1);
    b.sessions.clear();
    expect(await a.direct.push('u', payload, 60)).toMatchObject({ sessions: 0 });
    network.hanging.add('b-1');
    expect(await a.direct.push('u', payload, 60)).toMatchObject({ sessions: 0 });
    expect(await network.users.queue.pending('u', 0)).toHaveLength(2);
  });
});

describe('a message that is kept nowhere', () => {
  it('reads the store once for many', async () => {
    const session = await b.connect('u', 1);
    for (let i = 0; i < 5; i++) expect(await a.direct.send('u', payload)).toEqual({ sessions: 1 });
    expect(network.storeReads).toBe(1);
    expect(session.sent).toEqual(Array(5).fill({ type: 'direct', data: payload }));
    expect(network.commands).toHaveLength(5);
  });

  it('finds a user who has moved, at the first miss, and sends nothing twice', async () => {
    await b.connect('u', 1);
    const stays = await b.connect('u', 2);
    await a.direct.send('u', payload);
    b.sessions.delete('b-1.1');
    await network.users.sessions.remove('u', 'b-1.1');
    const c = network.add('c-1');
    const moved = await c.connect('u', 1);
    expect(await a.direct.send('u', payload)).toEqual({ sessions: 2 });
    expect([stays.sent.length, moved.sent.length]).toEqual([2, 1]);
    expect(await a.direct.send('u', payload)).toEqual({ sessions: 2 });
    expect(network.storeReads).toBe(3);
  });

  it('finds a user whose node has crashed', async () => {
    await b.connect('u', 1);
    await a.direct.send('u', payload);
    network.crashed.add('b-1');
    const moved = await network.add('c-1').connect('u', 1);
    expect(await a.direct.send('u', payload)).toEqual({ sessions: 1 });
    expect(moved.sent).toHaveLength(1);
  });

  it('does not miss who connects here, nor whoever was offline before', async () => {
    expect(await a.direct.send('u', payload)).toEqual({ sessions: 0 });
    await b.connect('u', 1);
    expect(await a.direct.send('u', payload)).toEqual({ sessions: 1 });
    await a.connect('u', 1);
    expect(await a.direct.send('u', payload)).toEqual({ sessions: 2 });
  });
});

describe('an operator', () => {
  it('closes the sessions of every node, and has all their tokens refused by each', async () => {
    const mine = [await a.connect('u', 1, { expSec: 11 }), await b.connect('u', 1, { expSec: 22 })];
    const other = await b.connect('v', 2);
    expect(await a.peers.kick('u')).toBe(2);
    expect(mine.map(({ closes }) => closes)).toEqual([['kicked'], ['kicked']]);
    expect(other.closes).toEqual([]);
    const tokens = [
      ['token-a-1.1', 11],
      ['token-b-1.1', 22],
    ];
    for (const node of [a, b]) {
      expect(node.blocked).toEqual(expect.arrayContaining(tokens));
      expect(node.blocked.every(([id]) => id !== 'token-b-1.2')).toBe(true);
    }
    // A node that comes later learns them.
    expect(await network.add('c-1').peers.blockedTokens()).toEqual(
      expect.arrayContaining(tokens.map(([id, expSec]) => ({ id, expSec }))),
    );
  });

  it('is told when a node did not answer, and nothing is closed behind the back of it', async () => {
    const session = await a.connect('u', 1);
    network.hanging.add('b-1');
    await expect(a.peers.kick('u')).rejects.toMatchObject({ code: 'unavailable' });
    await expect(a.peers.subscribe('u', ['x'])).rejects.toMatchObject({ code: 'unavailable' });
    expect(session.closes).toEqual([]);
  });

  it('subscribes and unsubscribes the sessions of every node, and no others', async () => {
    await a.connect('u', 1, { topics: ['held'] });
    await b.connect('u', 1);
    await b.connect('v', 2);
    expect(await a.peers.subscribe('u', ['held', 'item.>'])).toBe(2);
    expect(await a.peers.unsubscribe('u', ['held'])).toBe(2);
    expect(a.subscribed).toEqual(['a-1.1 item.>', 'a-1.1 -held']);
    expect(b.subscribed).toEqual(['b-1.1 held', 'b-1.1 item.>']);
  });

  it('counts and lists the subscribers of all nodes, each user once, and is told who is missing', async () => {
    await a.connect('u', 1, { topics: ['item.*'] });
    await b.connect('u', 1, { topics: ['item.1'] });
    await b.connect('v', 2, { topics: ['item.1'] });
    await b.connect('w', 3, { topics: ['item.2'] });
    expect(await a.peers.countSubscribers('item.1')).toEqual({ value: 4, missing: 0 });
    expect(await a.peers.usersOf('item.1')).toEqual({ value: ['u', 'v'], missing: 0 });
    network.hanging.add('b-1');
    expect(await a.peers.countSubscribers('item.1')).toEqual({ value: 1, missing: 1 });
    expect(await a.peers.usersOf('item.1')).toEqual({ value: ['u'], missing: 1 });
  });
});

describe('a command', () => {
  it.each<PeerCommand>([
    { type: 'hint', sessions: ['a-1.1'], id: 7, prev: 0, payload },
    { type: 'send', sessions: [], payload: { format: 'msgpack', bytes: new Uint8Array([0xc4, 2, 0xff, 0]) } },
    { type: 'kick', userId: 'u', tokens: [{ id: 't', expSec: 1.5 }] },
    { type: 'subscribe', userId: 'u', topics: ['a.*', 'b'] },
    { type: 'blocked' },
  ])('$type arrives as it was', (command) => {
    expect(readCommand(JSON.parse(JSON.stringify(wireCommand(command))))).toEqual(command);
  });

  it.each<unknown>([
    undefined,
    null,
    7,
    'kick',
    [],
    {},
    { type: 'other' },
    { type: 'kick', userId: 'u' },
    { type: 'kick', userId: 'not a user', tokens: [] },
    { type: 'hint', sessions: ['a.1'], id: 0, prev: 0, payload },
    { type: 'hint', sessions: ['a.1'], id: 1, prev: 0, payload: { format: 'json', text: '{"a":1}{' } },
    { type: 'send', sessions: [7], payload },
    { type: 'send', sessions: [], payload: { format: 'msgpack', base64: 'wQ==' } },
    { type: 'subscribe', userId: 'u', topics: ['*'] },
    { type: 'count', topic: 'a..b' },
  ])('that is none is refused: %j', async (value) => {
    expect(readCommand(value)).toBeUndefined();
    await expect(a.service.handle(value)).rejects.toMatchObject({ code: 'unknown_type' });
  });
});
