import { Socket, type SocketConstructorOpts, type TcpSocketConnectOpts } from 'node:net';
import { clientFrame, FrameStream, type FrameHandler } from './frame-stream.js';

export type LinkState = 'closed' | 'queued' | 'opening' | 'ready' | 'waiting' | 'failed';

/** What a link asks of the herd it belongs to. */
export interface LinkOwner {
  /** Where every socket of the process reads to: it is read out before the next socket is. */
  readonly buffer: Buffer;
  /** The request that opens this link. */
  upgrade(link: Link): string;
  /** The upgrade was accepted. */
  upgraded(link: Link): void;
  /** A text or binary frame, or a further part of one. */
  frame(link: Link, bytes: Buffer, start: number, end: number): void;
  read(): void;
  /** The socket is gone, whoever wanted that. */
  ended(link: Link): void;
}

const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;
const emptyPong = clientFrame(opcodes.pong, new Uint8Array(0));

/** A plain socket that knows its link, so that its listeners are the same functions for all. */
class LinkSocket extends Socket {
  readonly link: Link;

  constructor(link: Link, buffer: Buffer) {
    const onread: TcpSocketConnectOpts['onread'] = { buffer, callback: (size) => link.read(size) };
    // The constructor takes what `connect` hands on to it, `onread` included; the types know it of `connect` only.
    super({ onread } as SocketConstructorOpts);
    this.link = link;
  }
}

/** One client: its place in the herd, and the socket that it has at the time. */
export class Link implements FrameHandler {
  /** In the herd, from 0. */
  readonly index: number;
  state: LinkState = 'closed';
  startedUs = 0;
  /** Topics that the server has answered since the connect. */
  answered = 0;
  /** Connects without success, one after the other. */
  tries = 0;
  /** Connects without success in all: each moves it on to the next target. */
  turns = 0;
  /** It has been subscribed before. */
  wasReady = false;
  /** Status of the answer to the upgrade; 0: none. */
  status = 0;
  /** The head of an answer that is not 101. */
  refusal = '';
  /** Of the close, or of the `bye` before it; 1006 when there was none. */
  closeCode = 1006;
  /** How long the server wants to be left alone; 0: it has not said. */
  retryMs = 0;
  /** What the system said when the socket failed. */
  errorText = '';
  /** The herd has ended it. */
  asked = false;
  readonly #owner: LinkOwner;
  #socket: LinkSocket | undefined;
  #stream: FrameStream | undefined;

  constructor(owner: LinkOwner, index: number) {
    this.#owner = owner;
    this.index = index;
  }

  connect(host: string, port: number, source: string | undefined): void {
    const socket = new LinkSocket(this, this.#owner.buffer);
    this.#socket = socket;
    this.#stream = new FrameStream();
    this.answered = 0;
    this.status = 0;
    this.closeCode = 1006;
    this.retryMs = 0;
    this.errorText = '';
    this.asked = false;
    socket.on('connect', onConnect).on('error', onError).on('close', onClose);
    socket.setNoDelay(true);
    socket.connect({ host, port, ...(source === undefined ? {} : { localAddress: source }) });
  }

  /** Ends it without a goodbye, as a lost network or a killed process would. */
  cut(): void {
    this.asked = true;
    this.#socket?.resetAndDestroy();
  }

  /** Gives up an answer that is of no use. */
  leave(): void {
    this.#socket?.destroy();
  }

  send(opcode: 'text' | 'binary', payload: Uint8Array): void {
    this.#socket?.write(clientFrame(opcodes[opcode], payload));
  }

  read(size: number): boolean {
    this.#owner.read();
    this.#stream?.push(this.#owner.buffer.subarray(0, size), this);
    return true;
  }

  onHead(status: number, head: string): void {
    this.status = status;
    if (status === 101) return this.#owner.upgraded(this);
    this.refusal = head;
    this.leave();
  }

  onFrame(opcode: number, bytes: Buffer, start: number, end: number): void {
    // Servers other than nodes may split a message: what follows comes as a continuation.
    if (opcode <= opcodes.binary) {
      this.#owner.frame(this, bytes, start, end);
    } else if (opcode === opcodes.ping) {
      this.#socket?.write(start === end ? emptyPong : clientFrame(opcodes.pong, bytes.subarray(start, end)));
    } else if (opcode === opcodes.close) {
      if (this.closeCode === 1006 && end - start >= 2) this.closeCode = bytes.readUInt16BE(start);
      this.leave();
    }
  }

  opened(socket: LinkSocket): void {
    if (socket === this.#socket) socket.write(this.#owner.upgrade(this));
  }

  closed(socket: LinkSocket): void {
    if (socket !== this.#socket) return;
    this.#socket = undefined;
    this.#stream = undefined;
    this.#owner.ended(this);
  }
}

function onConnect(this: LinkSocket): void {
  this.link.opened(this);
}

function onError(this: LinkSocket, error: Error): void {
  this.link.errorText = error.message;
}

function onClose(this: LinkSocket): void {
  this.link.closed(this);
}
