import type { ErrorCode } from '../protocol/codes.js';

/**
 * Codes of the wire protocol, and the client's own: `closed` (the client was closed, by the application or for good by the server),
 * `unauthorized` (401 with a token that cannot be renewed), `refused` (the server does not want this client), `queue_full` (here: too
 * many publishes wait), `outcome_unknown` (a publish was sent, and the line lost for longer than the server remembers its id),
 * `token` (`getToken` failed, or the server refused what it gave), `handler` (a handler threw), `storage` (positions could not be kept), `environment` (no WebSocket).
 */
export type ClientErrorCode =
  | ErrorCode
  | 'closed'
  | 'unauthorized'
  | 'refused'
  | 'outcome_unknown'
  | 'token'
  | 'handler'
  | 'storage'
  | 'environment';

export interface TopicastErrorDetails {
  readonly cause?: unknown;
  readonly topic?: string;
}

/** Every error that the client gives away. `cause` holds what threw, where something did. */
export class TopicastError extends Error {
  override readonly name = 'TopicastError';
  readonly code: ClientErrorCode;
  /** The topic it is about, if it is about one. */
  readonly topic: string | undefined;

  constructor(code: ClientErrorCode, message: string, { cause, topic }: TopicastErrorDetails = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.topic = topic;
  }
}

/** What went wrong, for people, of anything that was thrown. */
export function textOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
