/**
 * What clients of a server that is no node say after the upgrade, and how messages are found in what comes back. One instance serves all sockets of a
 * process, so it remembers nothing of them.
 */
export interface Dialect {
  /** Of the frames that the client sends. */
  readonly opcode: 'text' | 'binary';
  /** Sent as soon as the upgrade is accepted; absent: the server speaks first. */
  readonly opening?: Uint8Array;
  /**
   * Reads what one frame has brought, after what the last one has left over.
   * @returns where what is not whole begins, `end` when nothing is left; it comes again, with what follows
   */
  read(bytes: Buffer, start: number, end: number, sink: DialectSink): number;
}

/** What a dialect tells of the socket that it reads for. */
export interface DialectSink {
  /** A message's payload begins here. */
  message(bytes: Buffer, payload: number, end: number): void;
  /** What has to be said back. */
  reply(payload: Uint8Array): void;
  /** The subscription is confirmed. */
  ready(): void;
  /** The server refuses something, or says what nobody understands. */
  fault(reason: string): void;
}

/** Servers whose clients speak differently from those of a node. */
export const dialectNames = ['socket.io', 'nats', 'centrifugo'] as const;
export type DialectName = (typeof dialectNames)[number];

const shownChars = 200;

/** The beginning of what was said, for people. */
export function excerpt(bytes: Buffer, start: number, end: number): string {
  return bytes.toString('utf8', start, Math.min(end, start + shownChars)).trim();
}

/** Where the byte is, `end` when it is not before that. Buffer's own search knows no end and would look through the frames that follow. */
export function indexOfByte(bytes: Buffer, byte: number, from: number, end: number): number {
  let at = from;
  while (at < end && bytes[at] !== byte) at++;
  return at;
}

/** Whether the bytes from `at` on are this text. */
export function startsWith(bytes: Buffer, at: number, end: number, text: Uint8Array): boolean {
  if (at + text.length > end) return false;
  for (let i = 0; i < text.length; i++) if (bytes[at + i] !== text[i]) return false;
  return true;
}
