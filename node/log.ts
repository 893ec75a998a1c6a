import { pino, type DestinationStream, type Logger } from 'pino';
import type { LogLevel } from './config-schema.js';
import { redactText, redactUrl } from './redact.js';

export type { Logger } from 'pino';
export { redactUrl };

/** Keys whose values are credentials wherever they stand in a log entry's first two levels. */
const secretKeys = ['token', 'authorization', 'sec-websocket-protocol', 'password', 'jwtSecret', 'apiKey'];

/**
 * A logger of JSON lines on standard error: standard output carries nothing but the line that says where the node
 * listens. Credentials are masked twice: by key, and by their look anywhere in the finished line, since error
 * messages of drivers quote addresses and requests.
 * @param destination where lines go instead; for tests
 */
export function createLogger(level: LogLevel, destination: DestinationStream = standardError()): Logger {
  return pino(
    {
      level,
      base: null,
      redact: { paths: secretKeys.flatMap((key) => [`["${key}"]`, `*["${key}"]`]), censor: '***' },
    },
    { write: (line) => destination.write(redactText(line)) },
  );
}

/** Synchronous, so that the lines before a crash are not lost. */
function standardError(): DestinationStream {
  return pino.destination({ fd: 2, sync: true });
}
