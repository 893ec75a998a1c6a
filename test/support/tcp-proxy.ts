import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** A line between clients and a node that can be cut. */
export interface TcpProxy {
  readonly port: number;
  /** Connections that were made through it so far. */
  readonly count: number;
  /** Ends every connection at once and without a word. With `stayDown` it also refuses new ones, until `restore`. */
  cut(stayDown?: boolean): void;
  restore(): void;
  close(): Promise<void>;
}

export async function startTcpProxy(target: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let isDown = false;
  let count = 0;
  const server = createServer((inner) => {
    if (isDown) return void inner.destroy();
    count++;
    const outer = connect(target, '127.0.0.1');
    for (const [socket, other] of [
      [inner, outer],
      [outer, inner],
    ] as const) {
      sockets.add(socket);
      socket.pipe(other);
      // A reset is how the other side sees a cut; the close that follows is what counts.
      socket.on('error', () => socket.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = (stayDown = false): void => {
    isDown = stayDown;
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    get count() {
      return count;
    },
    cut,
    restore: () => {
      isDown = false;
    },
    close: () => {
      cut(true);
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
