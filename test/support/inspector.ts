import { readFileSync } from 'node:fs';
import { WebSocket } from 'ws';
import type { NodeProcess } from './node-process.js';
import { Signal } from './signal.js';

/** The environment that opens the inspector of a node, on any free port of this machine. */
export const inspectorEnv = { NODE_OPTIONS: '--inspect=127.0.0.1:0' } as const;

export interface MemoryUse {
  /** Bytes of living objects of JavaScript. */
  readonly heap: number;
  /** Bytes that the process occupies, those of µWS and buffers included. */
  readonly rss: number;
}

/** Collects garbage in another process and says what is left. */
export class Inspector {
  readonly #socket: WebSocket;
  readonly #pid: number;
  readonly #answers = new Map<number, unknown>();
  readonly #signal = new Signal();
  #id = 0;

  private constructor(socket: WebSocket, pid: number) {
    this.#socket = socket;
    this.#pid = pid;
    socket.on('message', (data: Buffer) => {
      const { id, result } = JSON.parse(data.toString()) as { id?: number; result?: unknown };
      if (id !== undefined) this.#answers.set(id, result);
      this.#signal.notify();
    });
  }

  static async attach(node: NodeProcess): Promise<Inspector> {
    const [, url = ''] = await node.waitFor('stderr', /Debugger listening on (ws:\S+)/);
    const socket = new WebSocket(url, { perMessageDeflate: false });
    await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
    return new Inspector(socket, node.pid);
  }

  async measure(): Promise<MemoryUse> {
    // What finalizers let go of in the first run is collected in the second.
    await this.#call('HeapProfiler.collectGarbage');
    await this.#call('HeapProfiler.collectGarbage');
    const { usedSize } = (await this.#call('Runtime.getHeapUsage')) as { usedSize: number };
    const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${this.#pid}/status`, 'utf8'));
    return { heap: usedSize, rss: Number(line?.[1]) * 1024 };
  }

  close(): void {
    this.#socket.terminate();
  }

  async #call(method: string): Promise<unknown> {
    const id = ++this.#id;
    this.#socket.send(JSON.stringify({ id, method }));
    await this.#signal.until(`the answer to ${method}`, () => this.#answers.has(id));
    return this.#answers.get(id);
  }
}
