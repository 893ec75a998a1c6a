import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Logger } from './log.js';
import type { Metrics } from './metrics.js';

export interface MetricsServer {
  readonly port: number;
  close(): Promise<void>;
}

/**
 * Serves `GET /metrics`, without asking for a token, on a port of its own that is meant to be reached by the monitoring alone.
 * Rejects when it cannot listen there.
 */
export async function startMetricsServer(
  host: string,
  port: number,
  metrics: Pick<Metrics, 'render' | 'contentType'>,
  log: Pick<Logger, 'error'>,
): Promise<MetricsServer> {
  const server = createServer((req, res) => {
    if (req.url?.split('?')[0] !== '/metrics') {
      return answer(res, 404, 'text/plain', 'there is nothing here\n');
    }
    if (req.method !== 'GET') return answer(res, 405, 'text/plain', 'expected GET\n');
    metrics.render().then(
      (text) => answer(res, 200, metrics.contentType, text),
      (error: unknown) => {
        log.error({ err: error }, 'the metrics could not be read');
        answer(res, 500, 'text/plain', 'internal error\n');
      },
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function answer(res: ServerResponse, status: number, contentType: string, body: string): void {
  res.writeHead(status, { 'Content-Type': contentType, 'Cache-Control': 'no-store' }).end(body);
}
