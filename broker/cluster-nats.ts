import type { Msg } from 'nats';
import {
  beaconMs,
  deadAfterMs,
  type Cluster,
  type CommandHandler,
  type NodeBeacon,
  type NodeLoad,
} from './cluster.js';
import { unavailable } from './errors.js';
import { NatsCommands, nobody } from './nats-commands.js';
import type { NatsLink } from './nats-link.js';
import { NodeTable } from './node-table.js';

export interface NatsClusterOptions {
  readonly link: Pick<NatsLink, 'nc' | 'connected' | 'watch'>;
  /** One token; the prefix of every subject. */
  readonly prefix: string;
  readonly nodeId: string;
  /** Told, seldom, of messages that are not of this protocol. */
  readonly log?: { warn(fields: object, message: string): void };
  /** For tests; the defaults are those of `cluster.ts`. */
  readonly beaconMs?: number;
  readonly deadAfterMs?: number;
  readonly askMsMax?: number;
  readonly now?: () => number;
}

export interface NatsCluster extends Cluster {
  /** Messages so far that were not of this protocol. */
  readonly ignored: number;
}

/** How long a node may take to answer a command; one that works answers in a few milliseconds. */
const askMsMaxDefault = 3000;
/** Nodes that meet a new one introduce themselves within this time, once for all that came meanwhile. */
const introduceMsMax = 100;
/** A node that has not been there for so long does not know yet whom to expect. Shorter than `NatsCommands` takes to find an answer slow. */
const newcomerMs = 200;
const ignoredLogMs = 10_000;

/**
 * The cluster over NATS: `<prefix>.nodes` carries a beacon per node each two seconds and its goodbye, `<prefix>.node.<id>` the commands to one node,
 * `<prefix>.nodes.ask` those to all. Somebody else who subscribes to `<prefix>.node.>` (a monitor, say) counts as a listener for every node: then one that
 * has crashed is found out by its silence only.
 */
export function createNatsCluster(options: NatsClusterOptions): NatsCluster {
  return new NatsClusterEngine(options);
}

class NatsClusterEngine implements NatsCluster {
  readonly #options: NatsClusterOptions;
  readonly #now: () => number;
  readonly #table: NodeTable;
  readonly #commands: NatsCommands;
  readonly #nodesSubject: string;
  readonly #watchers: (() => void)[] = [];
  #describe: (() => NodeLoad) | undefined;
  #handle: CommandHandler | undefined;
  #subscription: { unsubscribe(): void } | undefined;
  #timer: NodeJS.Timeout | undefined;
  #introducing = false;
  #startedAt = 0;
  #ignored = 0;
  #ignoredLoggedAt = -Infinity;

  constructor(options: NatsClusterOptions) {
    const { link, nodeId, now = Date.now, prefix } = options;
    if (!NatsCommands.isNodeId(nodeId)) throw new Error(`not a node id: ${nodeId}`);
    this.#options = options;
    this.#now = now;
    this.#table = new NodeTable(nodeId, options.deadAfterMs ?? deadAfterMs, now);
    this.#nodesSubject = `${prefix}.nodes`;
    this.#commands = new NatsCommands({
      nc: link.nc,
      nodeId,
      subjectOf: (id) => `${prefix}.node.${id}`,
      allSubject: `${prefix}.nodes.ask`,
      askMsMax: options.askMsMax ?? askMsMaxDefault,
      onIgnored: (subject) => this.#ignore(subject),
    });
  }

  get ignored(): number {
    return this.#ignored;
  }

  async start(describe: () => NodeLoad, handle: CommandHandler): Promise<void> {
    const { link } = this.#options;
    if (!link.connected) throw unavailable('NATS is out of reach');
    this.#describe = describe;
    this.#handle = handle;
    this.#startedAt = this.#now();
    this.#table.hears(true);
    link.watch((connected) => this.#onConnected(connected));
    this.#commands.start(handle);
    this.#subscription = link.nc.subscribe(this.#nodesSubject, {
      callback: (error, message) => {
        if (error === null) this.#onBeacon(message);
        else this.#ignore(this.#nodesSubject);
      },
    });
    this.#beacon();
    this.#timer = setInterval(() => this.#tick(), this.#beaconMs);
    try {
      await link.nc.flush();
    } catch (error) {
      throw unavailable('NATS does not answer', error);
    }
  }

  watch(onChange: () => void): void {
    this.#watchers.push(onChange);
  }

  nodes(): readonly NodeBeacon[] {
    if (this.#describe === undefined) return [];
    const self = { ...this.#describe(), id: this.#options.nodeId, seenAt: this.#now() };
    return [self, ...this.#table.living()];
  }

  isDead(nodeId: string): boolean {
    return !NatsCommands.isNodeId(nodeId) || this.#table.isDead(nodeId);
  }

  async ask(nodeId: string, command: unknown): Promise<unknown> {
    const handle = this.#running();
    if (nodeId === this.#options.nodeId) return handle(command);
    if (!NatsCommands.isNodeId(nodeId)) return undefined;
    if (!this.#options.link.connected) throw unavailable('NATS is out of reach');
    const answer = await this.#commands.ask(nodeId, command);
    if (answer !== nobody) return answer;
    this.#onNobody(nodeId);
    return undefined;
  }

  async askAll(command: unknown, timeoutMs: number): Promise<readonly unknown[]> {
    const handle = this.#running();
    if (!this.#options.link.connected) throw unavailable('NATS is out of reach');
    const isNew = (): boolean => this.#now() - this.#startedAt < newcomerMs;
    const [own, others] = await Promise.all([
      handle(command).then(
        (answer) => [answer],
        () => [],
      ),
      this.#commands.askAll(
        command,
        timeoutMs,
        (answered) => !isNew() && this.#table.living().every(({ id }) => answered.has(id)),
        (answered) => this.#findGone(answered),
      ),
    ]);
    return [...own, ...others];
  }

  async stop(): Promise<void> {
    const { link, nodeId } = this.#options;
    if (this.#describe === undefined) return;
    this.#describe = undefined;
    this.#handle = undefined;
    clearInterval(this.#timer);
    this.#subscription?.unsubscribe();
    this.#commands.stop();
    if (!link.connected) return;
    this.#publish({ id: nodeId, goodbye: true });
    // Cut off at this moment: the others find out by its silence.
    await link.nc.flush().catch(() => undefined);
  }

  get #beaconMs(): number {
    return this.#options.beaconMs ?? beaconMs;
  }

  /** Nobody listens for a node. It may be cut off for a moment: its next beacon brings it back. */
  #onNobody(nodeId: string): void {
    if (this.#table.left(nodeId)) this.#changed();
  }

  async #findGone(answered: ReadonlySet<string>): Promise<void> {
    const silent = this.#table.living().filter(({ id }) => !answered.has(id));
    await Promise.all(
      silent.map(async ({ id }) => {
        if (!(await this.#commands.exists(id))) this.#onNobody(id);
      }),
    );
  }

  #running(): CommandHandler {
    if (this.#handle === undefined) throw unavailable('the node has not started, or is stopping');
    return this.#handle;
  }

  #tick(): void {
    this.#beacon();
    if (this.#table.expire()) this.#changed();
  }

  #beacon(): void {
    if (this.#describe === undefined || !this.#options.link.connected) return;
    this.#publish({ ...this.#describe(), id: this.#options.nodeId });
  }

  #publish(body: object): void {
    const { link } = this.#options;
    // A closed connection throws; that one will not be heard of again, and its node is about to end.
    if (!link.nc.isClosed()) link.nc.publish(this.#nodesSubject, JSON.stringify(body));
  }

  #onBeacon(message: Msg): void {
    const beacon = readBeacon(message);
    if (beacon === undefined) return this.#ignore(message.subject);
    if (beacon.id === this.#options.nodeId) return;
    if ('goodbye' in beacon) {
      if (this.#table.left(beacon.id)) this.#changed();
      return;
    }
    const news = this.#table.seen(beacon);
    if (news === 'new') this.#introduce();
    if (news !== 'same') this.#changed();
  }

  /** A node that has just come does not have to wait for this one's next beacon. */
  #introduce(): void {
    if (this.#introducing) return;
    this.#introducing = true;
    setTimeout(() => {
      this.#introducing = false;
      this.#beacon();
    }, Math.random() * introduceMsMax).unref();
  }

  #onConnected(connected: boolean): void {
    this.#table.hears(connected);
    if (connected) this.#beacon();
    else this.#commands.abandon('NATS was lost before the node answered');
  }

  #changed(): void {
    for (const onChange of this.#watchers) onChange();
  }

  #ignore(subject: string): void {
    this.#ignored++;
    const now = this.#now();
    if (now - this.#ignoredLoggedAt < ignoredLogMs) return;
    this.#ignoredLoggedAt = now;
    this.#options.log?.warn(
      { subject, ignored: this.#ignored },
      'a message is not one of a node of Topicast',
    );
  }
}

const textCharsMax = 2048;

type Goodbye = { readonly id: string; readonly goodbye: true };

function readBeacon(message: Msg): Omit<NodeBeacon, 'seenAt'> | Goodbye | undefined {
  let value: unknown;
  try {
    value = message.json();
  } catch {
    // Not JSON: counted by the caller.
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const { channels, connections, draining, goodbye, id, startedAt, url, version } = value as Record<
    string,
    unknown
  >;
  if (typeof id !== 'string' || !NatsCommands.isNodeId(id)) return undefined;
  if (goodbye === true) return { id, goodbye };
  if (!isCount(channels) || !isCount(connections) || !isCount(startedAt)) return undefined;
  if (!isText(url) || !isText(version) || typeof draining !== 'boolean') return undefined;
  return { id, url, version, channels, connections, startedAt, draining };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= textCharsMax;
}
