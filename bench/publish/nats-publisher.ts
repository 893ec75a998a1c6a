import { connect } from 'node:net';
import { natsConnect } from '../fleet/dialects/nats.js';
import { publisherOn, type Publisher } from '../fleet/publisher.js';

/**
 * Publishes to one subject over TCP, as services that publish to NATS do.
 *
 * @param url `nats://host:port` @param bytes of a payload
 * @throws Error when it cannot connect
 */
export async function openNatsPublisher(url: string, subject: string, bytes: number): Promise<Publisher> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  await new Promise<void>((resolve, reject) => {
    // The server speaks first.
    socket.once('data', () => resolve());
    socket.once('error', reject);
  });
  const refused: string[] = [];
  socket.setEncoding('latin1').on('data', (text: string) => {
    if (text.includes('PING')) socket.write('PONG\r\n');
    if (text.includes('-ERR')) refused.push(text.trim());
  });
  socket.on('error', (error) => refused.push(error.message));
  socket.on('close', () => refused.push('the connection of the publisher was closed'));
  socket.write(natsConnect);
  return publisherOn(
    { bytes, topics: [subject] },
    {
      refused,
      send({ data, topic }) {
        const text = data.format === 'json' ? data.text : '';
        socket.write(`PUB ${topic} ${Buffer.byteLength(text)}\r\n${text}\r\n`);
      },
      close() {
        socket.removeAllListeners('close');
        socket.destroy();
      },
    },
  );
}
