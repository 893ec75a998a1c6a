import type { ErrorCode } from '../protocol/codes.js';

/**
 * A failure that a caller is expected to handle and may pass on to a client: a code of the protocol, a
 * message for people, and what caused it. Anything else that an engine throws is a bug or a broken invariant.
 */
export class BrokerError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'BrokerError';
    this.code = code;
  }
}

/** The cluster part that was asked is out of reach; try again later. */
export function unavailable(message: string, cause?: unknown): BrokerError {
  return new BrokerError('unavailable', message, cause === undefined ? undefined : { cause });
}
