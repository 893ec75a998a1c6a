import { excerpt, indexOfByte, startsWith, type Dialect } from './dialect.js';

const [lineFeed, space, carriageReturn] = [0x0a, 0x20, 0x0d];
const verbs = {
  message: Buffer.from('MSG '),
  ping: Buffer.from('PING'),
  pong: Buffer.from('PONG'),
  error: Buffer.from('-ERR'),
} as const;
const pong = Buffer.from('PONG\r\n');

/** What a client says first, over WebSocket and over TCP. */
export const natsConnect = 'CONNECT {"verbose":false,"pedantic":false,"lang":"bench","version":"1"}\r\n';

/**
 * The protocol of NATS as a stream of bytes, which frames of a WebSocket cut anywhere: `MSG subject sid bytes`, the payload, a line break.
 * Source: https://docs.nats.io/reference/reference-protocols/nats-protocol.
 */
export function natsDialect(subject: string): Dialect {
  return {
    opcode: 'binary',
    // The answer to the PING comes after the subscription has been taken.
    opening: Buffer.from(`${natsConnect}SUB ${subject} 1\r\nPING\r\n`),
    read(bytes, start, end, sink) {
      let at = start;
      while (at < end) {
        const lineEnd = indexOfByte(bytes, lineFeed, at, end);
        if (lineEnd === end) return at;
        if (startsWith(bytes, at, end, verbs.message)) {
          const payload = lineEnd + 1;
          const next = payload + payloadBytes(bytes, lineEnd) + 2;
          if (next > end) return at;
          sink.message(bytes, payload, next - 2);
          at = next;
          continue;
        }
        if (startsWith(bytes, at, lineEnd, verbs.ping)) sink.reply(pong);
        else if (startsWith(bytes, at, lineEnd, verbs.pong)) sink.ready();
        else if (startsWith(bytes, at, lineEnd, verbs.error)) {
          sink.fault(`NATS said ${excerpt(bytes, at, lineEnd)}`);
        }
        at = lineEnd + 1;
      }
      return end;
    },
  };
}

/** The number at the end of a line: how long the payload is. */
function payloadBytes(bytes: Buffer, lineEnd: number): number {
  let value = 0;
  let unit = 1;
  let at = bytes[lineEnd - 1] === carriageReturn ? lineEnd - 2 : lineEnd - 1;
  for (; bytes[at] !== space; at--) {
    value += (bytes[at]! - 0x30) * unit;
    unit *= 10;
  }
  return value;
}
