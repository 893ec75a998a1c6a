import type { TemplatedApp, UwsModule, us_listen_socket } from './uws.js';

/** The port could not be had. */
export class ListenError extends Error {
  constructor(host: string, port: number) {
    super(
      `cannot listen on ${host}:${port}: the port is in use by another process, or the address is not one of this machine's, or not allowed`,
    );
    this.name = 'ListenError';
  }
}

export interface Listening {
  readonly port: number;
  /** Takes no more connections; those that exist stay. */
  close(): void;
}

/**
 * The option is missing in the published types for the form with a host. Without it two processes could listen on one port, and the kernel
 * would split the connections between them without a word.
 */
type ListenWith = (
  host: string,
  port: number,
  options: number,
  done: (socket: us_listen_socket | false) => void,
) => void;

const sharedPort = 0;
const exclusivePort = 1;

/**
 * @param port 0 takes any free one
 * @param shared whether others may listen on it too, if they all say so
 * @throws ListenError
 */
export function listen(
  uws: UwsModule,
  app: TemplatedApp,
  host: string,
  port: number,
  shared = false,
): Promise<Listening> {
  return new Promise((resolve, reject) => {
    const listenWith = app.listen.bind(app) as unknown as ListenWith;
    listenWith(host, port, shared ? sharedPort : exclusivePort, (socket) => {
      if (socket === false) return reject(new ListenError(host, port));
      resolve({ port: uws.us_socket_local_port(socket), close: () => uws.us_listen_socket_close(socket) });
    });
  });
}
