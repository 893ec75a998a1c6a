/** Told what a server has sent on one socket. Ranges of bytes are valid during the call only. */
export interface FrameHandler {
  /** The answer to the upgrade, without its last line break. */
  onHead(status: number, head: string): void;
  /** One whole frame's payload. Servers do not mask, and nodes do not split messages over frames. */
  onFrame(opcode: number, bytes: Buffer, start: number, end: number): void;
}

/** Cuts the server's side of one WebSocket into frames. Chunks may be cut anywhere; nothing is copied but what is left over. */
export class FrameStream {
  /** Status of the answer to the upgrade; 0 until it came. */
  status = 0;
  #rest: Buffer | undefined;

  /** @param chunk may be reused by the caller afterwards */
  push(chunk: Buffer, handler: FrameHandler): void {
    const bytes = this.#rest === undefined ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = this.status === 0 ? this.#readHead(bytes, handler) : 0;
    if (this.status === 101) at = readFrames(bytes, at, handler);
    this.#rest = at < bytes.length ? Buffer.from(bytes.subarray(at)) : undefined;
  }

  #readHead(bytes: Buffer, handler: FrameHandler): number {
    const end = bytes.indexOf('\r\n\r\n');
    if (end < 0) return 0;
    this.status = Number(bytes.toString('latin1', 9, 12));
    handler.onHead(this.status, bytes.toString('latin1', 0, end));
    return end + 4;
  }
}

/** @returns where the first frame begins that is not whole */
function readFrames(bytes: Buffer, from: number, handler: FrameHandler): number {
  let at = from;
  while (at + 2 <= bytes.length) {
    const short = bytes[at + 1]! & 0x7f;
    const headBytes = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (at + headBytes > bytes.length) break;
    const start = at + headBytes;
    const end = start + payloadBytes(bytes, at, short);
    if (end > bytes.length) break;
    handler.onFrame(bytes[at]! & 0x0f, bytes, start, end);
    at = end;
  }
  return at;
}

function payloadBytes(bytes: Buffer, at: number, short: number): number {
  if (short < 126) return short;
  return short === 126 ? bytes.readUInt16BE(at + 2) : Number(bytes.readBigUInt64BE(at + 2));
}

/** A frame from a client. Its mask is zero: that is allowed (RFC 6455, 5.3 asks for an unpredictable one for the sake of proxies), and costs nothing. */
export function clientFrame(opcode: number, payload: Uint8Array): Buffer {
  const size = payload.length;
  const head = Buffer.alloc(size < 126 ? 6 : 8);
  if (size >= 65_536) throw new RangeError('a frame from a client may not be that long');
  head[0] = 0x80 | opcode;
  head[1] = 0x80 | (size < 126 ? size : 126);
  if (size >= 126) head.writeUInt16BE(size, 2);
  return Buffer.concat([head, payload]);
}
