import { jsonCodec } from '../../protocol/codec-json.js';
import { msgpackCodec } from '../../protocol/codec-msgpack.js';
import type { Codec } from '../../protocol/codec.js';
import type { HerdSettings, HerdState, Ramp } from './commands.js';
import { PeerInbox } from './dialects/peer-inbox.js';
import { Inbox, type LinkInbox } from './inbox.js';
import { Latencies } from './latencies.js';
import { Link, type LinkOwner } from './link.js';
import { nowUs } from './marker.js';
import { Pacer, retryDelayMs } from './pacer.js';
import { handshakeRoom, retryAfterSec, upgradeText } from './upgrade.js';
import { signTokens, userOf } from './users.js';

const bufferBytes = 64 * 1024;
const pumpMs = 5;
const faultsMax = 10;

/** The client sockets of one process: opens them at their pace, keeps them open, and has what comes counted. */
export class Herd implements LinkOwner {
  readonly buffer = Buffer.allocUnsafeSlow(bufferBytes);
  readonly #settings: HerdSettings;
  readonly #tokens: readonly string[];
  readonly #codec: Codec;
  readonly #inbox: LinkInbox;
  readonly #links: Link[] = [];
  readonly #handshakes = new Latencies();
  readonly #closed: Record<string, number> = {};
  readonly #faults: string[] = [];
  readonly #settled: (() => void)[] = [];
  #queue: Link[] = [];
  #queueAt = 0;
  #ramp: Ramp = { perSec: 1000, atOnce: 50, retryRefused: false };
  #pacer: Pacer | undefined;
  #pump: NodeJS.Timeout | undefined;
  #ready = 0;
  #opening = 0;
  #waiting = 0;
  #failed = 0;
  #refused = 0;
  #reads = 0;

  private constructor(settings: HerdSettings, tokens: readonly string[]) {
    this.#settings = settings;
    this.#tokens = tokens;
    this.#codec = settings.codec === 'json' ? jsonCodec : msgpackCodec;
    const onFault = (reason: string): void => this.#fault(reason);
    this.#inbox =
      settings.dialect === undefined
        ? new Inbox(settings, this.#codec, onFault)
        : new PeerInbox(settings, settings.dialect, onFault);
    for (let i = 0; i < settings.sockets; i++) this.#links.push(new Link(this, i));
  }

  /** Tokens are signed here, so that signing takes no time from the ramp. */
  static async create(settings: HerdSettings): Promise<Herd> {
    const { first, sockets, users } = settings;
    return new Herd(settings, users === undefined ? [] : await signTokens(users, first, sockets));
  }

  /** Whether sockets are being opened. */
  get busy(): boolean {
    return this.#opening > 0 || this.#queueAt < this.#queue.length;
  }

  /** Opens what is not open. Resolves when nothing is being opened any more. */
  async open(ramp: Ramp): Promise<void> {
    this.#ramp = ramp;
    this.#pacer = new Pacer(ramp.perSec, ramp.atOnce, performance.now());
    for (const link of this.#links) {
      if (link.state === 'failed') this.#failed--;
      if (link.state === 'closed' || link.state === 'failed') this.#enqueue(link);
    }
    await this.#untilSettled();
  }

  begin(): void {
    this.#reads = 0;
    this.#handshakes.reset();
    this.#inbox.begin();
  }

  /** @returns how many were cut */
  drop(share: number): number {
    let owed = 0;
    let cut = 0;
    for (const link of this.#links) {
      if (link.state !== 'ready') continue;
      owed += share;
      if (owed < 1 - 1e-9) continue;
      owed -= 1;
      cut++;
      this.#leaveState(link);
      link.cut();
    }
    return cut;
  }

  close(): void {
    this.#queue = [];
    this.#queueAt = 0;
    for (const link of this.#links) {
      if (link.state === 'ready' || link.state === 'opening') link.cut();
      this.#leaveState(link);
    }
    this.#settle();
  }

  state(latencies: boolean): HerdState {
    const cpu = process.cpuUsage();
    return {
      ready: this.#ready,
      opening: this.#opening,
      waiting: this.#waiting + this.#queue.length - this.#queueAt,
      failed: this.#failed,
      refused: this.#refused,
      closed: { ...this.#closed },
      reads: this.#reads,
      ...this.#inbox.counts(),
      cpuSec: (cpu.user + cpu.system) / 1e6,
      latencies: latencies ? this.#inbox.latencies.text() : '',
      handshakes: latencies ? this.#handshakes.text() : '',
      faults: [...this.#faults],
    };
  }

  // What links tell.

  upgrade(link: Link): string {
    const { device, groups, offerProtocol, path, users } = this.#settings;
    const number = this.#settings.first + link.index;
    const requests = this.#inbox.requests(link);
    const topics = requests.slice(0, handshakeRoom(requests));
    const user = users === undefined || this.#tokens.length > 0 ? undefined : userOf(users, number);
    const query = [
      ...(groups.length > 0 && topics.length > 0 ? [`topics=${topics.join(',')}`] : []),
      ...(user === undefined ? [] : [`user=${user}`]),
      ...(device === undefined ? [] : [`device=${device}`]),
    ].join('&');
    const token = this.#tokens[link.index];
    return upgradeText({
      ...this.#targetOf(link),
      target: query === '' ? path : `${path}?${query}`,
      ...(offerProtocol ? { protocol: this.#codec.subprotocol } : {}),
      ...(token === undefined ? {} : { token }),
    });
  }

  upgraded(link: Link): void {
    this.#inbox.upgraded?.(link);
    if (this.#settings.readyOn === 'upgrade') this.#becameReady(link);
  }

  read(): void {
    this.#reads++;
  }

  frame(link: Link, bytes: Buffer, start: number, end: number): void {
    const answered = this.#inbox.take(link, bytes, start, end);
    if (answered && link.state === 'opening' && this.#inbox.isAnswered(link)) this.#becameReady(link);
  }

  ended(link: Link): void {
    if (link.asked) return this.#settle();
    const was = link.state;
    this.#leaveState(link);
    if (was === 'ready') this.#lost(link);
    else if (link.status === 503 || link.status === 429) this.#toldToWait(link);
    else this.#notOpened(link);
    this.#settle();
  }

  #lost(link: Link): void {
    const code = String(link.closeCode);
    this.#closed[code] = (this.#closed[code] ?? 0) + 1;
    if (this.#settings.comeBack) this.#comeBackLater(link, link.retryMs / 1000);
  }

  #toldToWait(link: Link): void {
    this.#refused++;
    if (this.#ramp.retryRefused) this.#comeBackLater(link, retryAfterSec(link.refusal));
    else this.#fail(link, `the upgrade was answered ${link.status}`);
  }

  #notOpened(link: Link): void {
    const why =
      link.status !== 0 && link.status !== 101
        ? `the upgrade was answered ${link.status}`
        : link.errorText || `closed before it was subscribed (${link.closeCode})`;
    const isFinal = link.status >= 400 && link.status < 500;
    if (this.#settings.comeBack && !isFinal) this.#comeBackLater(link, link.retryMs / 1000);
    else this.#fail(link, why);
  }

  #fail(link: Link, reason: string): void {
    link.state = 'failed';
    this.#failed++;
    this.#fault(reason);
  }

  /** @param hintSec 0: the server has not said */
  #comeBackLater(link: Link, hintSec: number): void {
    link.tries++;
    if (link.status === 0) link.turns++;
    const delayMs = retryDelayMs(link.tries, hintSec, Math.random);
    link.state = 'waiting';
    this.#waiting++;
    setTimeout(comeBack, delayMs, this, link);
  }

  /** @internal */
  cameBack(link: Link): void {
    if (link.state !== 'waiting') return;
    this.#waiting--;
    this.#enqueue(link);
  }

  #leaveState(link: Link): void {
    if (link.state === 'ready') this.#ready--;
    else if (link.state === 'opening') this.#opening--;
    else if (link.state === 'waiting') this.#waiting--;
    else if (link.state === 'failed') this.#failed--;
    link.state = 'closed';
  }

  #becameReady(link: Link): void {
    if (link.state !== 'opening') return;
    this.#opening--;
    this.#ready++;
    link.state = 'ready';
    link.wasReady = true;
    link.tries = 0;
    this.#handshakes.record(nowUs() - link.startedUs);
    this.#settle();
  }

  #enqueue(link: Link): void {
    link.state = 'queued';
    this.#queue.push(link);
    this.#pump ??= setInterval(() => this.#startDue(), pumpMs);
  }

  #startDue(): void {
    const wanted = this.#queue.length - this.#queueAt;
    const count = this.#pacer?.take(performance.now(), this.#opening, wanted) ?? 0;
    for (let i = 0; i < count; i++) {
      const link = this.#queue[this.#queueAt++]!;
      link.state = 'opening';
      this.#opening++;
      link.startedUs = nowUs();
      const { host, port } = this.#targetOf(link);
      const { sources } = this.#settings;
      link.connect(host, port, sources[link.index % Math.max(1, sources.length)]);
    }
    if (this.#queueAt < this.#queue.length) return;
    this.#queue = [];
    this.#queueAt = 0;
    clearInterval(this.#pump);
    this.#pump = undefined;
  }

  #targetOf(link: Link): { readonly host: string; readonly port: number } {
    const { first, targets } = this.#settings;
    // One that does not answer is not asked again at once.
    const target = targets[(first + link.index + link.turns) % targets.length];
    if (target === undefined) throw new Error('a herd needs a target');
    return target;
  }

  #untilSettled(): Promise<void> {
    return new Promise((resolve) => {
      this.#settled.push(resolve);
      this.#settle();
    });
  }

  #settle(): void {
    if (this.busy || this.#waiting > 0) return;
    for (const resolve of this.#settled.splice(0)) resolve();
  }

  #fault(reason: string): void {
    if (this.#faults.length < faultsMax) this.#faults.push(reason);
  }
}

/** A function of its own, so that a timer of a waiting socket carries no closure. */
function comeBack(herd: Herd, link: Link): void {
  herd.cameBack(link);
}
