import type { ErrorCode } from './codes.js';

/**
 * The outcome of reading something that came from outside: a value, or a coded error.
 * Decoders and parsers return it and never throw, whatever the bytes (see `docs/protocol.md`).
 */
export type Result<T> = { readonly ok: true; readonly value: T } | Failure;

/** Why something from outside was refused. `message` is for people and never repeats secrets. */
export interface Failure {
  readonly ok: false;
  readonly code: ErrorCode;
  readonly message: string;
  /** The request number of the refused frame, when it could still be read. */
  readonly req?: number;
}

export function success<T>(value: T): Result<T> {
  return { ok: true, value };
}

export function failure(code: ErrorCode, message: string, req?: number): Failure {
  return req === undefined ? { ok: false, code, message } : { ok: false, code, message, req };
}
