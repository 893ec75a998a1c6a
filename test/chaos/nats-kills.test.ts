import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { BrokerError } from '../../broker/errors.js';
import { freshPrefix, startTestNode, type Hosted, type TestNode } from '../support/nats-bus.js';
import { natsServers } from '../support/servers/binaries.js';
import { seededRandom } from '../support/random.js';
import { startNatsCluster, type NatsServers } from '../support/servers/nats-kit.js';
import { eventually, Signal } from '../support/signal.js';

let servers: NatsServers;
let prefix: string;
let nodes: TestNode[] = [];

async function startNodes(): Promise<void> {
  prefix = freshPrefix();
  nodes = await Promise.all(
    servers.urls.map(() => startTestNode({ servers: servers.urls, prefix, auditSec: 2 })),
  );
}

interface Flow {
  /** Texts whose storing was acknowledged. */
  readonly acknowledged: Set<string>;
  refused: number;
  /** Told of each answer. */
  readonly answered: Signal;
  stop(): Promise<void>;
}

/** Publishes one after another, each with an id, again with the same one until it is acknowledged. */
function publishSteadily(node: TestNode, name: string, topics: number): Flow {
  let isStopping = false;
  const flow = { acknowledged: new Set<string>(), refused: 0, answered: new Signal() };
  const run = async (): Promise<void> => {
    for (let i = 0; !isStopping; i++) {
      const value = `${name}-${i}`;
      for (;;) {
        try {
          await node.store(`item.${i % topics}`, value, value);
          flow.acknowledged.add(JSON.stringify(value));
          flow.answered.notify();
          break;
        } catch (error) {
          if (!(error instanceof BrokerError) || error.code !== 'unavailable') throw error;
          flow.refused++;
          flow.answered.notify();
          // What is tried again while nobody leads the stream would only be refused again.
          await leaderIndex(node);
        }
      }
    }
  };
  const ended = run();
  return Object.assign(flow, {
    stop: () => {
      isStopping = true;
      return ended;
    },
  });
}

const topics = 3;
const healMsMax = 60_000;
const seed = Number(process.env['TOPICAST_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 32));

/** What goes on beside the disturbances, which are paced by what is acknowledged and refused, never by time. */
class Pace {
  readonly #flows: readonly Flow[];
  readonly #random = seededRandom(seed);

  constructor(flows: readonly Flow[]) {
    this.#flows = flows;
  }

  /** Settles when each publisher has had some more messages acknowledged, as many as the seed says. */
  async flows(): Promise<void> {
    await this.#each((flow) => flow.acknowledged.size, 20 + this.#random.int(200));
  }

  /** Settles when the publishers have had some more answers, be it refusals: time passes in which not all of the servers are there. */
  async answers(): Promise<void> {
    await this.#each((flow) => flow.acknowledged.size + flow.refused, 1 + this.#random.int(200));
  }

  async #each(count: (flow: Flow) => number, more: number): Promise<void> {
    const waits = this.#flows.map((flow) => {
      const target = count(flow) + more;
      return flow.answered.until(
        `${more} more answers, seed ${seed}`,
        () => count(flow) >= target,
        healMsMax,
      );
    });
    await Promise.all(waits);
  }
}

async function underFlow(disturb: (pace: Pace) => Promise<void>): Promise<void> {
  const exact: Hosted[][] = [];
  const wide: Hosted[] = [];
  for (const node of nodes) {
    exact.push(await Promise.all(Array.from({ length: topics }, (_, i) => node.host(`item.${i}`))));
    wide.push(await node.host('item.>'), await node.host('item.*', 'item.0.>'));
  }
  const flows = [publishSteadily(nodes[0]!, 'a', topics), publishSteadily(nodes[1]!, 'b', topics)];
  const pace = new Pace(flows);
  await pace.flows();
  await disturb(pace);
  await servers.healthy();
  // It flows again before it ends.
  await pace.flows();
  await Promise.all(flows.map((flow) => flow.stop()));
  const acknowledged = new Set(flows.flatMap((flow) => [...flow.acknowledged]));
  const since = performance.now();
  const missing = (one: Hosted): string[] => {
    const has = new Set(one.texts);
    return [...acknowledged].filter((text) => !has.has(text)).map((text) => placeOf(text, exact.flat(), one));
  };
  await expect.poll(() => wide.flatMap(missing), { timeout: 60_000 }).toEqual([]);
  await expect
    .poll(
      () => exact.every((some) => some.reduce((sum, one) => sum + one.texts.length, 0) >= acknowledged.size),
      {
        timeout: 60_000,
      },
    )
    .toBe(true);
  const repaired = nodes.map((node) => node.counters.gapsRepaired);
  console.log(
    `TOPICAST_TEST_SEED=${seed}: ${acknowledged.size} acknowledged, ${flows.map((f) => f.refused).join('+')} refusals tried again, all there ${Math.round(performance.now() - since)} ms after the last; repaired ${repaired.join(', ')}`,
  );
  for (const one of wide) expectOnceInOrder(one, acknowledged);
  for (const some of exact) {
    for (const one of some) expectOnceInOrder(one);
    expect(new Set(some.flatMap((one) => one.texts))).toEqual(acknowledged);
  }
  expect(nodes.flatMap((node) => node.epochs)).toEqual([]);
}

/** Where a message is that did not come, as far as the feeds of topics tell, and what came around it. */
function placeOf(text: string, exact: readonly Hosted[], without: Hosted): string {
  const seqs = exact.flatMap(({ offsets, texts }) => offsets[texts.indexOf(text)] ?? []);
  const next = without.offsets.findIndex((offset) => offset > (seqs[0] ?? Infinity));
  const around = without.offsets.slice(Math.max(0, next - 1), next + 1);
  return `${text} is at ${seqs.join()}; ${around.join(' and ')} came; gaps ${JSON.stringify(without.gaps)}`;
}

function expectOnceInOrder({ gaps, offsets, texts }: Hosted, all?: ReadonlySet<string>): void {
  expect(gaps).toEqual([]);
  expect(offsets.every((offset, i) => i === 0 || offset > offsets[i - 1]!)).toBe(true);
  expect(new Set(texts).size).toBe(texts.length);
  if (all !== undefined) expect(new Set(texts)).toEqual(all);
}

/** Waits until the stream has a leader. @returns its number */
async function leaderIndex(node = nodes[2]!): Promise<number> {
  let index = -1;
  await eventually(
    'the stream has a leader',
    async () => {
      try {
        const info = await node.link.api<{ cluster?: { leader?: string } }>(`STREAM.INFO.${prefix}_item`);
        index = servers.nodes.findIndex(({ name }) => name === info.cluster?.leader);
      } catch (error) {
        if (!(error instanceof BrokerError)) throw error;
      }
      return index >= 0;
    },
    healMsMax,
  );
  return index;
}

describe.each(natsServers())('nats-server $version', ({ version }) => {
  beforeAll(async () => {
    servers = await startNatsCluster(3, { version });
  });
  afterAll(() => servers.stop());
  beforeEach(startNodes);
  afterEach(() => Promise.all(nodes.map((node) => node.stop())));

  it('loses and doubles nothing through step-downs of the stream leader', async () => {
    await underFlow(async (pace) => {
      for (let i = 0; i < 4; i++) {
        await leaderIndex();
        await nodes[2]!.link.api(`STREAM.LEADER.STEPDOWN.${prefix}_item`).catch((error: unknown) => {
          if (!(error instanceof BrokerError)) throw error;
        });
        await pace.flows();
      }
    });
  });

  it('loses and doubles nothing when the leader is killed, and comes back', async () => {
    await underFlow(async (pace) => {
      const leader = await leaderIndex();
      await servers.kill(leader);
      // The two that are left elect another leader, and go on.
      await pace.flows();
      await servers.restart(leader);
    });
  });

  it('loses and doubles nothing when a follower is killed, and comes back', async () => {
    await underFlow(async (pace) => {
      const follower = ((await leaderIndex()) + 1) % 3;
      await servers.kill(follower);
      await pace.flows();
      await servers.restart(follower);
    });
  });

  it('loses and doubles nothing when each server is killed in turn', async () => {
    await underFlow(async (pace) => {
      for (let i = 0; i < 3; i++) {
        await servers.kill(i);
        await pace.answers();
        await servers.restart(i);
        await servers.healthy();
        await pace.flows();
      }
    });
  });

  it('heals when all servers were gone', async () => {
    await underFlow(async () => {
      await Promise.all([0, 1, 2].map((i) => servers.kill(i)));
      await expect.poll(() => nodes.some((node) => node.bus.connected), { timeout: 20_000 }).toBe(false);
      await expect(nodes[0]!.store('item.0', 'x')).rejects.toMatchObject({ code: 'unavailable' });
      await Promise.all([0, 1, 2].map((i) => servers.restart(i)));
    });
  });

  it('starts while JetStream has no leader yet, and is there once it has', async () => {
    await Promise.all([servers.kill(1), servers.kill(2)]);
    const inVain = new Signal();
    const faults: unknown[] = [];
    const starting = startTestNode({
      servers: [servers.urls[0]!],
      prefix: freshPrefix(),
      onFault: (error) => {
        faults.push(error);
        inVain.notify();
      },
    });
    await inVain.until('it has looked for JetStream in vain', () => faults.length > 0);
    await Promise.all([servers.restart(1), servers.restart(2)]);
    const node = await starting;
    nodes.push(node);
    const hosted = await node.host('item.1');
    await node.store('item.1', 1);
    await node.signal.until('it', () => hosted.texts.length === 1);
  });
});
