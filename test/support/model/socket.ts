import type { Encoded } from '../../../protocol/codec.js';
import type { ServerFrame } from '../../../protocol/frames.js';
import type { ChannelMessage } from '../../../node/message.js';
import type { Outlet, OutletChannel, SendStatus } from '../../../node/outlet.js';

export type WireFrame = ServerFrame | string;

export interface SocketEvents {
  dropped(): void;
  drained(): void;
  closed(): void;
}

/**
 * A socket that behaves as µWebSockets does, counting frames in place of bytes. What is published waits in a batch that is written at the
 * end of the turn or before the next `send`; when a message of it finds the buffer over its limit, `dropped` fires and the rest of
 * the batch is gone in silence. A `send` that began below the limit goes through even if the batch before it did not.
 */
export class ModelSocket implements Outlet {
  readonly #kernelMax: number;
  readonly #bufferMax: number;
  readonly #events: SocketEvents;
  readonly #topics = new Set<string>();
  #batch: string[] = [];
  #buffer: WireFrame[] = [];
  #closed = false;
  /** What the client can read. */
  readonly wire: WireFrame[] = [];

  constructor(kernelMax: number, bufferMax: number, events: SocketEvents) {
    this.#kernelMax = kernelMax;
    this.#bufferMax = bufferMax;
    this.#events = events;
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  send(frame: ServerFrame): SendStatus {
    return this.#write(frame);
  }

  sendWithNext(frame: ServerFrame): void {
    this.#write(frame);
  }

  deliver(message: ChannelMessage): SendStatus {
    return this.#write(message.json);
  }

  join(channel: OutletChannel): void {
    if (this.#closed) return;
    this.#topics.add(channel.jsonTopic);
    channel.jsonCount++;
  }

  leave(channel: OutletChannel): void {
    this.#topics.delete(channel.jsonTopic);
    channel.jsonCount--;
  }

  ping(): void {
    // The frame itself does not matter here, only that it is a `send` like any other.
    if (this.#closed) return;
    if (this.#buffer.length > this.#bufferMax) this.#events.dropped();
    else this.#flushBatch();
  }

  buffered(): number {
    return this.#closed ? 0 : this.#buffer.length;
  }

  close(): void {
    this.#end();
  }

  /** The client has gone, or the server ended it. */
  #end(): void {
    if (this.#closed) return;
    this.#batch = [];
    this.#closed = true;
    this.#events.closed();
  }

  /** The node has noticed that the client has gone. */
  hangUp(): void {
    this.#end();
  }

  publish(topic: string, frame: Encoded): void {
    if (this.#closed || typeof frame !== 'string' || !this.#topics.has(topic)) return;
    this.#batch.push(frame);
    if (this.#batch.length >= 32) this.#flushBatch();
  }

  /** The end of a turn of the event loop. */
  endTurn(): void {
    this.#flushBatch();
  }

  get hasBatch(): boolean {
    return this.#batch.length > 0;
  }

  /** The client reads up to `count` frames, which makes room for as many that were buffered. */
  read(count: number): WireFrame[] {
    const read = this.wire.splice(0, count);
    const waited = this.#buffer.length > 0;
    this.wire.push(...this.#buffer.splice(0, this.#kernelMax - this.wire.length));
    if (waited && this.#buffer.length === 0 && !this.#closed) this.#events.drained();
    return read;
  }

  #flushBatch(): void {
    const batch = this.#batch;
    this.#batch = [];
    for (const frame of batch) if (this.#write(frame) === 'dropped') return;
  }

  #write(frame: WireFrame): SendStatus {
    if (this.#closed) return 'sent';
    if (this.#buffer.length > this.#bufferMax) {
      this.#events.dropped();
      return 'dropped';
    }
    if (this.#batch.length > 0) this.#flushBatch();
    if (this.#buffer.length === 0 && this.wire.length < this.#kernelMax) {
      this.wire.push(frame);
      return 'sent';
    }
    this.#buffer.push(frame);
    return 'buffered';
  }
}
