import { errorCodes, type ErrorCode } from '../protocol/codes.js';
import type { CommandHandler } from './cluster.js';
import { BrokerError } from './errors.js';

/** How commands and their answers travel: a message is a JSON list of commands, and its answer the list of their outcomes. */

/** What one node answered to one command. */
export type Answer =
  { readonly ok?: unknown } | { readonly error: { readonly code: string; readonly message: string } };

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** The outcome of one command as JSON. Never rejects. */
export async function outcomeOf(handle: CommandHandler, command: unknown): Promise<string> {
  try {
    return JSON.stringify({ ok: await handle(command) });
  } catch (error) {
    const code = error instanceof BrokerError ? error.code : 'internal';
    const message = error instanceof BrokerError ? error.message : 'internal error';
    return JSON.stringify({ error: { code, message } });
  }
}

/** The failure that a node answered. */
export function failureOf({
  code,
  message,
}: {
  readonly code: string;
  readonly message: string;
}): BrokerError {
  return new BrokerError(isErrorCode(code) ? code : 'internal', message);
}

function isErrorCode(code: string): code is ErrorCode {
  return (errorCodes as readonly string[]).includes(code);
}

/** Undefined for anything that is not a JSON list. */
export function readList(bytes: Uint8Array): unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(utf8.decode(bytes));
    return Array.isArray(value) ? value : undefined;
  } catch {
    // Neither UTF-8 nor JSON, perhaps: the caller counts it.
    return undefined;
  }
}

/** Undefined for anything that is not a list of answers. */
export function readAnswers(bytes: Uint8Array): Answer[] | undefined {
  const answers = readList(bytes);
  return answers?.every(isAnswer) === true ? answers : undefined;
}

function isAnswer(value: unknown): value is Answer {
  if (typeof value !== 'object' || value === null) return false;
  if (!('error' in value)) return true;
  const { error } = value;
  return (
    typeof error === 'object' &&
    error !== null &&
    'code' in error &&
    typeof error.code === 'string' &&
    'message' in error &&
    typeof error.message === 'string'
  );
}
