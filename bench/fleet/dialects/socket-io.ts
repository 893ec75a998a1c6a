import { excerpt, startsWith, type Dialect } from './dialect.js';

const connect = Buffer.from('40');
const pong = Buffer.from('3');
/** Engine.IO packet types, and behind `message` that of Socket.IO. */
const types = { open: 0x30, ping: 0x32, message: 0x34, noop: 0x36, connect: 0x30 } as const;

/** Of the event that the server emits for each message. */
export const socketIoEvent = 'm';

/**
 * Engine.IO 4 over WebSocket, one packet a frame: `0{…}` from the server is answered with `40`, the client is in with `40{…}`, messages are
 * `42["m",…]`, `2` asks for `3`. Source: https://socket.io/docs/v4/engine-io-protocol/ and socket-io-protocol/.
 */
export function socketIoDialect(): Dialect {
  const head = Buffer.from(`42["${socketIoEvent}",`);
  return {
    opcode: 'text',
    read(bytes, start, end, sink) {
      if (startsWith(bytes, start, end, head)) {
        sink.message(bytes, start + head.length, end);
        return end;
      }
      const type = bytes[start];
      if (type === types.open) sink.reply(connect);
      else if (type === types.ping) sink.reply(pong);
      else if (type === types.message && bytes[start + 1] === types.connect) sink.ready();
      else if (type !== types.noop) sink.fault(`Socket.IO said ${excerpt(bytes, start, end)}`);
      return end;
    },
  };
}
