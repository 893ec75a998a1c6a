import { WebSocket } from 'ws';
import { nowUs, payloadText } from './payload.js';

/** How a message is put for a server: the whole text frame. */
export type Wrap = (payload: string, number: number) => string;

export interface Publisher {
  /** Sends `count` messages, `perSec` a second, each due at its own time: what comes late is sent at once and does not move the later ones. */
  send(first: number, count: number, perSec: number): Promise<void>;
  close(): void;
}

/** One WebSocket connection that publishes. @param onRefused told of what the server refuses @throws Error when it cannot connect */
export async function openPublisher(
  url: string,
  protocol: string | undefined,
  payloadBytes: number,
  wrap: Wrap,
  onRefused: (text: string) => void,
): Promise<Publisher> {
  const socket = new WebSocket(url, protocol === undefined ? [] : [protocol], { perMessageDeflate: false });
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', reject);
  });
  socket.on('message', (data: Buffer) => {
    if (data.includes('"type":"error"')) onRefused(data.toString());
  });
  socket.on('close', () => onRefused('the connection of the publisher was closed'));
  return {
    send: (first, count, perSec) =>
      new Promise((resolve) => {
        const startUs = nowUs();
        const dueUs = (i: number): number => Math.round(startUs + (i * 1e6) / perSec);
        let sent = 0;
        const step = (): void => {
          for (; sent < count && dueUs(sent) <= nowUs(); sent++) {
            const number = first + sent;
            socket.send(wrap(payloadText({ dueUs: dueUs(sent), number }, payloadBytes), number));
          }
          if (sent === count) resolve();
          else setTimeout(step, Math.max(0, (dueUs(sent) - nowUs()) / 1000));
        };
        step();
      }),
    close: () => {
      socket.removeAllListeners('close');
      socket.terminate();
    },
  };
}
