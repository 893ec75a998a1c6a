import { WebSocket } from 'ws';
import { publisherOn, type Publisher } from '../fleet/publisher.js';

/**
 * One Socket.IO client that emits `event` with each message.
 *
 * @param url `http://host:port` @param path with the query of the transport @param bytes of a payload
 * @throws Error when it cannot connect
 */
export async function openSocketIoPublisher(
  url: string,
  path: string,
  event: string,
  bytes: number,
): Promise<Publisher> {
  const socket = new WebSocket(url.replace(/^http/, 'ws') + path, { perMessageDeflate: false });
  const refused: string[] = [];
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.on('message', (data: Buffer) => {
      const text = data.toString();
      if (text.startsWith('0')) socket.send('40');
      else if (text === '2') socket.send('3');
      else if (text.startsWith('40')) resolve();
      else if (text.startsWith('44')) reject(new Error(`Socket.IO refused: ${text}`));
    });
  });
  socket.on('error', (error) => refused.push(error.message));
  socket.on('close', (code) => refused.push(`the connection of the publisher was closed (${code})`));
  return publisherOn(
    { bytes, topics: [event] },
    {
      refused,
      send({ data }) {
        socket.send(`42["${event}",${data.format === 'json' ? data.text : 'null'}]`);
      },
      close() {
        socket.removeAllListeners('close');
        socket.terminate();
      },
    },
  );
}
