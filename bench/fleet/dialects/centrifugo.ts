import { excerpt, indexOfByte, startsWith, type Dialect } from './dialect.js';

const lineFeed = 0x0a;
const ping = Buffer.from('{}');
const subscribed = Buffer.from('{"id":2,"subscribe":');
const connected = Buffer.from('{"id":1,"connect":');

/**
 * The JSON protocol of Centrifugo: commands and replies are lines, several in a frame; a ping is `{}` and is answered with the same.
 * Source: https://centrifugal.dev/docs/transports/client_protocol.
 */
export function centrifugoDialect(channel: string): Dialect {
  // In the order in which the server writes the fields.
  const push = Buffer.from(`{"push":{"channel":${JSON.stringify(channel)},"pub":{"data":`);
  return {
    opcode: 'text',
    opening: Buffer.from(
      `{"id":1,"connect":{}}\n{"id":2,"subscribe":{"channel":${JSON.stringify(channel)}}}`,
    ),
    read(bytes, start, end, sink) {
      for (let at = start; at < end;) {
        const lineEnd = indexOfByte(bytes, lineFeed, at, end);
        if (startsWith(bytes, at, lineEnd, push)) sink.message(bytes, at + push.length, lineEnd);
        else if (lineEnd - at === ping.length && startsWith(bytes, at, lineEnd, ping)) sink.reply(ping);
        else if (startsWith(bytes, at, lineEnd, subscribed)) sink.ready();
        else if (!startsWith(bytes, at, lineEnd, connected) && lineEnd > at) {
          sink.fault(`Centrifugo said ${excerpt(bytes, at, lineEnd)}`);
        }
        at = lineEnd + 1;
      }
      return end;
    },
  };
}
