import { connect, type Socket } from 'node:net';
import { FrameCounter } from './frame-counter.js';
import { nowUs, readMarker } from './payload.js';

/**
 * A process of its own that holds many sockets and counts what comes. Started by `fleet-process.ts` with its settings as one JSON argument, and
 * asked over IPC. Plain sockets with an upgrade written by hand and one shared buffer: a client library would need more CPU than the server.
 */

export interface FleetSettings {
  readonly host: string;
  readonly port: number;
  /** Path and query of the upgrade. */
  readonly target: string;
  readonly protocol?: string;
  readonly readyOn: 'upgrade' | 'subscribed';
  readonly sockets: number;
  /**
   * Reads what has gathered at most once in so many milliseconds; 0 reads at once. Readers that are late by some milliseconds cost the client a
   * tenth of the CPU and the server nothing: what was written waits in the kernel.
   */
  readonly napMs: number;
  /** Takes the latency of each message and checks the order; for a few sockets that read at once. */
  readonly probe: boolean;
  /** Messages with a smaller number warm up and give no latency. */
  readonly warmUpMessages: number;
}

export type FleetReport =
  | { readonly kind: 'ready' }
  | { readonly kind: 'failed'; readonly reason: string }
  | {
      readonly kind: 'state';
      readonly messages: number;
      /** Reads of sockets: with several messages each, the server wrote them together or this process was late. */
      readonly reads: number;
      /** Messages out of order, missing or twice, on sockets of a probe. */
      readonly disorder: number;
      /** µs, of a probe. */
      readonly latenciesUs: readonly number[];
    };

const chunkBytes = 64 * 1024;
const upgradesAtOnce = 50;

const settings = JSON.parse(process.argv[2] ?? '{}') as FleetSettings;
const counters: FrameCounter[] = [];
const latenciesUs: number[] = [];
let disorder = 0;
let reads = 0;
let ready = 0;
let opened = 0;

process.on('message', (ask: 'state' | 'end') => {
  if (ask === 'end') process.exit(0);
  const messages = counters.reduce((sum, counter) => sum + counter.messages, 0);
  report({ kind: 'state', messages, reads, disorder, latenciesUs });
});
process.once('disconnect', () => process.exit(0));
for (let i = 0; i < upgradesAtOnce; i++) openNext();
if (settings.napMs > 0) nap();

function report(state: FleetReport): void {
  process.send?.(state);
}

function fail(reason: string): void {
  report({ kind: 'failed', reason });
}

function openNext(): void {
  if (opened >= settings.sockets) return;
  opened++;
  const counter = createCounter();
  counters.push(counter);
  const buffer = Buffer.allocUnsafe(chunkBytes);
  const socket: Socket = connect({
    host: settings.host,
    port: settings.port,
    noDelay: true,
    onread: {
      buffer,
      callback: (size) => {
        reads++;
        const wasReady = counter.isReady;
        counter.push(buffer.subarray(0, size));
        if (!wasReady && counter.isReady) becameReady();
        if (counter.status !== 0 && counter.status !== 101) {
          fail(`the upgrade was answered ${counter.status}`);
        }
        return true;
      },
    },
  });
  socket.on('connect', () => socket.write(upgradeRequest()));
  socket.on('error', (error) => fail(error.message));
  socket.on('close', () => fail('a socket was closed by the server'));
}

function becameReady(): void {
  ready++;
  if (ready === settings.sockets) report({ kind: 'ready' });
  else openNext();
}

function createCounter(): FrameCounter {
  if (!settings.probe) return new FrameCounter(settings.readyOn);
  let next = 0;
  return new FrameCounter(settings.readyOn, (bytes, start, end) => {
    const { dueUs, number } = readMarker(bytes, start, end);
    if (number !== next) disorder++;
    next = number + 1;
    if (number >= settings.warmUpMessages) latenciesUs.push(nowUs() - dueUs);
  });
}

function upgradeRequest(): string {
  const { host, port, protocol, target } = settings;
  return [
    `GET ${target} HTTP/1.1`,
    `Host: ${host}:${port}`,
    'Upgrade: websocket',
    'Connection: Upgrade',
    // The example of RFC 6455: nobody checks the answer here, and no proxy is between.
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Version: 13',
    ...(protocol === undefined ? [] : [`Sec-WebSocket-Protocol: ${protocol}`]),
    '\r\n',
  ].join('\r\n');
}

/** Sleeps between two turns of the event loop once all sockets are open; the next turn reads what has gathered. */
function nap(): void {
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  setInterval(() => {
    if (ready === settings.sockets) Atomics.wait(sleeper, 0, 0, settings.napMs);
  }, 1);
}
