import { seededRandom, type Random } from '../random.js';
import type { Faults } from './bus.js';
import { ModelClient } from './client.js';
import { ModelClock, settle, withClock } from './clock.js';
import { lingerMs, ModelNode, type Link } from './node.js';
import { Oracle, type Violation } from './oracle.js';
import { ModelStore } from './store.js';

export interface Outcome {
  readonly violations: readonly Violation[];
  readonly messages: number;
  readonly received: number;
  readonly resyncs: number;
  readonly repaired: number;
}

const topics = ['d.a', 'd.b', 'd.c.x', 'd.c.y'];
const filters = [...topics, 'd.*', 'd.c.*', 'd.*.x', 'd.>', 'd.c.>', 'd.none'];
/** Rounds in which everything that is under way arrives, after which whatever still is will never end. */
const quietRoundsMax = 3000;

/** Runs one schedule: two nodes, a few clients, every fault the design speaks of, in an order that the seed alone decides. */
export async function runSchedule(seed: number): Promise<Outcome> {
  const random = seededRandom(seed);
  const clock = new ModelClock();
  return withClock(
    clock,
    () => random.int(1_000_000) / 1_000_000,
    () => new Schedule(random, clock).run(),
  );
}

class Schedule {
  readonly #random: Random;
  readonly #clock: ModelClock;
  readonly #faults: Faults;
  readonly #store: ModelStore;
  readonly #oracle: Oracle;
  readonly #nodes: readonly ModelNode[];
  readonly #clients: readonly ModelClient[];
  /** Connections whose client is gone, which their node has not noticed. */
  #dead: Link[] = [];
  readonly #steps: readonly (() => unknown)[];

  constructor(random: Random, clock: ModelClock) {
    this.#random = random;
    this.#clock = clock;
    this.#faults = {
      lost: random.pick([0, 2, 10]),
      failed: random.pick([0, 5, 20]),
      stale: random.pick([0, 30]),
    };
    this.#store = new ModelStore(random.pick([2, 4, 100, 100]), random.pick([2, 5, 1000]));
    this.#oracle = new Oracle(this.#store);
    this.#nodes = [0, 1].map(() => new ModelNode(this.#store, clock, random, this.#faults));
    this.#clients = [0, 1, 2].map(() => new ModelClient(this.#oracle, random));
    this.#steps = weighted(this.#weights());
  }

  async run(): Promise<Outcome> {
    for (const node of this.#nodes) await node.start();
    for (const client of this.#clients) {
      client.connect(this.#node());
      client.subscribe(this.#someFilters());
    }
    const steps = 60 + this.#random.int(90);
    for (let i = 0; i < steps; i++) {
      await this.#random.pick(this.#steps)();
      if (this.#random.int(3) > 0) this.#endTurn();
      // Otherwise the next step comes in the same turn, with nothing but promises settled in between.
      if (this.#random.int(8) > 0) await settle();
    }
    await this.#finish();
    return {
      violations: this.#oracle.violations,
      messages: this.#store.messages,
      received: sum(this.#clients, (client) => client.received),
      resyncs: sum(this.#nodes, (node) => node.resyncs),
      repaired: sum(this.#nodes, (node) => node.counters.gapsRepaired),
    };
  }

  #weights(): readonly [number, () => unknown][] {
    const random = this.#random;
    return [
      [24, () => this.#publish(1 + random.int(4))],
      [2, () => this.#publish(10 + random.int(30))],
      [24, () => this.#node().bus.deliver()],
      [16, () => this.#answer()],
      [16, () => this.#client().read(1 + random.int(10))],
      [12, () => this.#client().reachNode()],
      [6, () => this.#clock.advance(1 + random.int(60))],
      [2, () => this.#clock.advance(random.int(1000))],
      [7, () => this.#client().subscribe(this.#someFilters())],
      [3, () => this.#unsubscribeSomething()],
      [3, () => this.#client().ping()],
      [3, () => this.#leave()],
      [8, () => this.#comeBack()],
      [2, () => this.#noticeDead()],
      [1, () => this.#node().bus.disconnect()],
      [3, () => this.#reconnectNode()],
      [3, () => this.#node().bus.audit()],
      [0.25, () => this.#replaceStream()],
    ];
  }

  #publish(count: number): void {
    for (let i = 0; i < count; i++) {
      const entry = this.#store.append(this.#random.pick(topics));
      for (const { bus } of this.#nodes) bus.stored(entry);
    }
  }

  /** The node acts on an answer before anything else of the bus reaches it. */
  async #answer(): Promise<void> {
    this.#node().bus.answer();
    await settle();
  }

  #someFilters(): string[] {
    const count = 1 + this.#random.int(3);
    return [...new Set(Array.from({ length: count }, () => this.#random.pick(filters)))];
  }

  #unsubscribeSomething(): void {
    const client = this.#client();
    if (client.filters.length > 0) client.unsubscribe(this.#random.pick(client.filters));
  }

  #leave(): void {
    const link = this.#client().disconnect();
    if (link === undefined) return;
    if (this.#random.int(2) === 0) link.socket.hangUp();
    else this.#dead.push(link);
  }

  #comeBack(): void {
    const client = this.#client();
    if (!client.isConnected) client.connect(this.#node());
  }

  #noticeDead(): void {
    this.#dead.pop()?.socket.hangUp();
  }

  #reconnectNode(): void {
    const { bus } = this.#node();
    if (!bus.connected) bus.connect();
  }

  #replaceStream(): void {
    this.#store.replace();
    for (const { bus } of this.#nodes) bus.epochDue = true;
  }

  #endTurn(): void {
    this.#clock.runImmediates();
    for (const node of this.#nodes) for (const { socket } of [...node.links]) socket.endTurn();
  }

  /** Faults stop, everybody is back, and after one look at the head everything that is owed has to come. */
  async #finish(): Promise<void> {
    Object.assign(this.#faults, { lost: 0, failed: 0, stale: 0 });
    for (const { socket } of this.#dead) socket.hangUp();
    await settle();
    for (const { bus } of this.#nodes) bus.connected = true;
    for (const { bus } of this.#nodes) if (bus.epochDue) bus.deliver();
    await this.#quieten();
    for (const { bus } of this.#nodes) bus.connect();
    await this.#quieten();
    for (const client of this.#clients) client.ping();
    await this.#quieten();
    for (const client of this.#clients) client.judge();
    for (const client of this.#clients) client.disconnect()?.socket.hangUp();
    await this.#clock.advance(lingerMs + 1);
    const left = sum(this.#nodes, (node) => node.channels);
    if (left > 0) this.#oracle.report('leak', `${left} channels that nobody holds`);
    for (const fault of this.#nodes.flatMap((node) => node.faults)) {
      this.#oracle.report('fault', String(fault));
    }
  }

  async #quieten(): Promise<void> {
    for (let round = 0; round < quietRoundsMax; round++) {
      for (const client of this.#clients) {
        if (!client.isConnected) client.connect(this.#node());
        client.read(Infinity);
        client.reachNode();
      }
      for (const { bus } of this.#nodes) {
        bus.answer();
        bus.deliver();
      }
      await settle();
      this.#endTurn();
      await settle();
      if (!this.#isIdle()) continue;
      if (!this.#clock.hasTimers) return;
      await this.#clock.advance(2500);
    }
    this.#oracle.report('stuck', 'it never comes to rest');
  }

  #isIdle(): boolean {
    if (this.#clock.hasImmediates) return false;
    return this.#nodes.every(({ bus }) => bus.isIdle) && this.#clients.every((client) => client.isIdle);
  }

  #node(): ModelNode {
    return this.#random.pick(this.#nodes);
  }

  #client(): ModelClient {
    return this.#random.pick(this.#clients);
  }
}

/** Each as often as its weight says, in quarters. */
function weighted<T>(weights: readonly (readonly [number, T])[]): T[] {
  return weights.flatMap(([weight, value]) => Array.from({ length: weight * 4 }, () => value));
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}
