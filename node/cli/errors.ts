/** Exit codes of every command. */
export const exitCodes = { fine: 0, failed: 1, usage: 2 } as const;

/** The command was called wrongly: one line for standard error, exit code 2. */
export class UsageError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'UsageError';
  }
}

/** The command was right and did not succeed (refused, out of reach): one line for standard error, exit code 1. */
export class CliFailure extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CliFailure';
  }
}

/** What a person needs to know of an error of `fetch` or a socket, on one line: they hide the reason in the causes. */
export function describe(error: unknown): string {
  const code = systemCode(error);
  const known = code === undefined ? undefined : systemReasons[code];
  if (known !== undefined) return known;
  if (error instanceof TypeError && error.cause instanceof Error) return describe(error.cause);
  const text = error instanceof Error ? error.message || error.name : String(error);
  return oneLine(code !== undefined && !text.includes(code) ? `${text} (${code})` : text);
}

export function oneLine(text: string): string {
  return text.replace(/\s*[\r\n]+\s*/g, ' ').trim();
}

const systemReasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'the connection was reset',
  ENOTFOUND: 'no such host',
  EAI_AGAIN: 'the name cannot be looked up now',
  ETIMEDOUT: 'timed out',
  EHOSTUNREACH: 'no route to the host',
  UND_ERR_CONNECT_TIMEOUT: 'timed out',
  UND_ERR_SOCKET: 'the connection was closed without an answer',
};

/** The system's code of an error or of what caused it (several addresses of one name fail as an aggregate). */
function systemCode(error: unknown): string | undefined {
  for (let at = error, depth = 0; at instanceof Error && depth < 8; depth++) {
    if ('code' in at && typeof at.code === 'string') return at.code;
    at = at instanceof AggregateError ? at.errors[0] : at.cause;
  }
  return undefined;
}
