/**
 * Reads the server's side of one WebSocket: skips the answer to the upgrade, then counts `msg` frames. Text frames of a server are not masked,
 * so a frame is told by the first bytes of its payload and nothing is decoded. Chunks may be cut anywhere.
 */
export class FrameCounter {
  /** `msg` frames so far. */
  messages = 0;
  /** The server has said that the subscription stands. */
  isReady = false;
  /** Status of the answer to the upgrade; 0 until it came. */
  status = 0;
  readonly #readyOn: 'upgrade' | 'subscribed';
  readonly #onMessage: ((bytes: Buffer, start: number, end: number) => void) | undefined;
  #rest: Buffer | undefined;

  /**
   * @param readyOn which sign to take for the subscription
   * @param onMessage gets each `msg` frame's payload as a range of `bytes`, valid during the call only
   */
  constructor(
    readyOn: 'upgrade' | 'subscribed',
    onMessage?: (bytes: Buffer, start: number, end: number) => void,
  ) {
    this.#readyOn = readyOn;
    this.#onMessage = onMessage;
  }

  /** @param chunk may be reused by the caller afterwards */
  push(chunk: Buffer): void {
    const bytes = this.#rest === undefined ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = this.status === 0 ? this.#readHead(bytes) : 0;
    if (this.status === 101) at = this.#readFrames(bytes, at);
    this.#rest = at < bytes.length ? Buffer.from(bytes.subarray(at)) : undefined;
  }

  #readHead(bytes: Buffer): number {
    const end = bytes.indexOf('\r\n\r\n');
    if (end < 0) return 0;
    this.status = Number(bytes.toString('latin1', 9, 12));
    if (this.status === 101 && this.#readyOn === 'upgrade') this.isReady = true;
    return end + 4;
  }

  #readFrames(bytes: Buffer, from: number): number {
    let at = from;
    while (at + 2 <= bytes.length) {
      const short = bytes[at + 1]! & 0x7f;
      const headBytes = short < 126 ? 2 : short === 126 ? 4 : 10;
      if (at + headBytes > bytes.length) break;
      const start = at + headBytes;
      const end = start + frameBytes(bytes, at, short);
      if (end > bytes.length) break;
      this.#take(bytes, at, start, end);
      at = end;
    }
    return at;
  }

  /** The node's frames begin `{"type":"msg"` or `{"type":"subscribed"`. */
  #take(bytes: Buffer, at: number, start: number, end: number): void {
    if ((bytes[at]! & 0x0f) !== 1 || end - start < 12) return;
    if (bytes[start + 9] === 0x6d && bytes[start + 10] === 0x73 && bytes[start + 11] === 0x67) {
      this.messages++;
      this.#onMessage?.(bytes, start, end);
    } else if (this.#readyOn === 'subscribed' && bytes[start + 9] === 0x73) {
      this.isReady = true;
    }
  }
}

function frameBytes(bytes: Buffer, at: number, short: number): number {
  if (short < 126) return short;
  return short === 126 ? bytes.readUInt16BE(at + 2) : Number(bytes.readBigUInt64BE(at + 2));
}
