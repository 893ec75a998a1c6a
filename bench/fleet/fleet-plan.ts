import type { FleetUsers, HerdSettings } from './commands.js';
import type { DialectName } from './dialects/dialect.js';
import type { HerdProgram } from './herd-process.js';

/** Client sockets in several processes. */
export interface FleetOptions {
  /** `http://host:port` of each node; sockets go to them in turn, or by `spread`. */
  readonly urls: readonly string[];
  /** What goes to the nodes in turn: each socket, unless given, or all sockets of a process together. */
  readonly spread?: 'sockets' | 'processes';
  /** So many processes open their sockets at the same time, the others after them; all unless given. Without probes only. */
  readonly processesAtOnce?: number;
  readonly sockets: number;
  /** Socket i subscribes to `groups[i % groups.length]`. */
  readonly groups: readonly (readonly string[])[];
  /** `json` unless given. */
  readonly codec?: 'json' | 'msgpack';
  readonly users?: FleetUsers;
  readonly device?: string;
  /** How late sockets may read, which saves CPU of this side; 0 unless given. */
  readonly napMs?: number;
  /**
   * So many of the sockets read at once, whatever `napMs`, in processes of their own, and they alone take latencies: half of them are the first that
   * are opened, half the last. 0 unless given: all take latencies, unless they nap.
   */
  readonly probes?: number;
  /** Who checks numbers and offsets: `all` unless given. Those who do not cannot resume. */
  readonly check?: 'all' | 'probes' | 'none';
  /** Of every topic, that each socket must begin with; any unless given. */
  readonly firstNumber?: number;
  /** Sockets that are closed or cut come back by themselves. */
  readonly comeBack?: boolean;
  /** Processes besides those of probes; as few as can hold the sockets unless given. */
  readonly processes?: number;
  /** For servers other than a node. */
  readonly path?: string;
  readonly offerProtocol?: boolean;
  readonly readyOn?: HerdSettings['readyOn'];
  readonly dialect?: DialectName;
  /** What runs each process; the one that is shipped unless given. */
  readonly program?: HerdProgram;
  /** Sockets that a process may hold: 19,500 unless given (20,000 descriptors are a common limit). */
  readonly socketsPerProcessMax?: number;
  /** A server that answers no upgrade for so long has given up; a minute unless given. */
  readonly silentMsMax?: number;
}

const socketsPerProcess = 19_500;
/** Of any process, beside its sockets: files, and connections to NATS and Redis. */
const descriptorsBeside = 100;

/**
 * The processes of a fleet, in the order in which they open their sockets: the first probes, the rest, the last probes.
 * @param descriptors that a process may hold
 * @throws Error when a server cannot hold its share of the sockets: it would leave the others waiting for ever
 */
export function planHerds(options: FleetOptions, descriptors = Infinity): HerdSettings[] {
  const { napMs = 0, probes = 0, sockets } = options;
  if (probes > sockets) throw new RangeError('more probes than sockets');
  const holds = descriptors - descriptorsBeside;
  const ofServer = Math.ceil(sockets / options.urls.length);
  if (ofServer > holds) {
    throw new Error(
      `a server would have to hold ${ofServer} sockets, and a process may hold ${descriptors} descriptors here: ` +
        `use fewer sockets, or allow more descriptors (ulimit -n ${ofServer + descriptorsBeside})`,
    );
  }
  const socketsPerProcessMax = Math.min(options.socketsPerProcessMax ?? socketsPerProcess, holds);
  const bulk = sockets - probes;
  const processes = Math.max(options.processes ?? 1, Math.ceil(bulk / socketsPerProcessMax));
  const firstProbes = Math.ceil(probes / 2);
  const parts: { sockets: number; isProbe: boolean }[] = [
    { sockets: firstProbes, isProbe: true },
    ...Array.from({ length: processes }, (_, i) => ({
      sockets: Math.floor((bulk * (i + 1)) / processes) - Math.floor((bulk * i) / processes),
      isProbe: false,
    })),
    { sockets: probes - firstProbes, isProbe: true },
  ].filter((part) => part.sockets > 0);
  let first = 0;
  return parts.map((part, i) => {
    const settings = herdSettings(options, part.sockets, first, i);
    first += part.sockets;
    const { check = 'all' } = options;
    return {
      ...settings,
      napMs: part.isProbe ? 0 : napMs,
      latency: part.isProbe || (probes === 0 && napMs === 0),
      check: check === 'all' || (check === 'probes' && part.isProbe),
    };
  });
}

function herdSettings(options: FleetOptions, sockets: number, first: number, process: number): HerdSettings {
  const { device, dialect, firstNumber, users } = options;
  const own = options.urls[process % options.urls.length];
  const urls = options.spread === 'processes' && own !== undefined ? [own] : options.urls;
  const targets = urls.map((text) => {
    const url = new URL(text);
    return { host: url.hostname, port: Number(url.port) };
  });
  return {
    targets,
    path: options.path ?? '/v1/connect',
    codec: options.codec ?? 'json',
    offerProtocol: options.offerProtocol ?? true,
    readyOn: options.readyOn ?? 'subscribed',
    ...(dialect === undefined ? {} : { dialect }),
    sockets,
    first,
    groups: options.groups,
    ...(users === undefined ? {} : { users }),
    ...(device === undefined ? {} : { device }),
    sources: targets.every((target) => target.host.startsWith('127.')) ? sourcesOf(process) : [],
    napMs: 0,
    latency: false,
    check: true,
    ...(firstNumber === undefined ? {} : { firstNumber }),
    comeBack: options.comeBack ?? false,
  };
}

/** An address has some 28,000 ports for outgoing connections: two for each process leave room for those that linger after a close. */
function sourcesOf(process: number): string[] {
  const addressOf = (n: number): string => `127.0.${1 + Math.floor(n / 250)}.${2 + (n % 250)}`;
  return [addressOf(process * 2), addressOf(process * 2 + 1)];
}
