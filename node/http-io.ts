import { STATUS_CODES } from 'node:http';
import type { ErrorCode } from '../protocol/codes.js';
import type { HttpResponse } from './uws.js';

/** Codes of error bodies: those of the protocol, and those that only HTTP needs. */
export type HttpErrorCode =
  | ErrorCode
  | 'header_too_large'
  | 'not_implemented'
  | 'unauthorized'
  | 'not_found'
  | 'method_not_allowed'
  | 'unsupported_media_type';

export type HttpHeader = readonly [name: string, value: string];

export interface ReplyOptions {
  readonly headers?: readonly HttpHeader[];
  /** The origin that a browser may hand the answer to; undefined names none. */
  readonly corsOrigin?: string | undefined;
  /** `no-store` unless told. */
  readonly cacheControl?: string;
}

export interface Reply extends ReplyOptions {
  readonly status: number;
  readonly contentType: string;
  readonly body: string | Uint8Array;
  /** An answer to HEAD: the headers, with the length that the body would have. */
  readonly headOnly?: boolean;
}

export const jsonType = 'application/json; charset=utf-8';

/** How long a browser may remember the answer to a preflight. */
const preflightSec = 600;
const preflightHeaders = 'Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Api-Key';
const exposedHeaders = 'Retry-After';

/**
 * Writes a whole answer. The caller knows that the response is still there: not aborted, not answered. Nothing of it may be
 * kept by caches: answers tell of the moment, and of what one caller may see.
 */
export function sendReply(res: HttpResponse, reply: Reply): void {
  res.cork(() => {
    writeHead(res, reply.status, reply);
    res.writeHeader('Content-Type', reply.contentType);
    if (reply.headOnly === true) res.endWithoutBody(Buffer.byteLength(reply.body));
    else res.end(reply.body);
  });
}

/** Writes `{"error":{"code","message"}}`; the same conditions as `sendReply`. */
export function sendError(
  res: HttpResponse,
  status: number,
  code: HttpErrorCode,
  message: string,
  options: ReplyOptions = {},
): void {
  sendReply(res, { ...options, status, contentType: jsonType, body: errorBody(code, message) });
}

export function errorBody(code: HttpErrorCode, message: string): string {
  return JSON.stringify({ error: { code, message } });
}

/** Answers a preflight. Without an origin the browser takes it as a no. */
export function sendPreflight(res: HttpResponse, methods: string, corsOrigin: string | undefined): void {
  res.cork(() => {
    writeHead(res, 204, { corsOrigin });
    if (corsOrigin !== undefined) {
      res.writeHeader('Access-Control-Allow-Methods', methods);
      res.writeHeader('Access-Control-Allow-Headers', preflightHeaders);
      res.writeHeader('Access-Control-Max-Age', String(preflightSec));
    }
    res.writeHeader('Allow', methods);
    res.endWithoutBody();
  });
}

/** The status line and the headers that every answer has; to be called corked. */
export function writeHead(res: HttpResponse, status: number, options: ReplyOptions): void {
  const { cacheControl = 'no-store', corsOrigin, headers } = options;
  res.writeStatus(`${status} ${STATUS_CODES[status] ?? ''}`);
  res.writeHeader('Cache-Control', cacheControl);
  res.writeHeader('X-Content-Type-Options', 'nosniff');
  res.writeHeader('Vary', 'Origin');
  if (corsOrigin !== undefined) {
    res.writeHeader('Access-Control-Allow-Origin', corsOrigin);
    res.writeHeader('Access-Control-Expose-Headers', exposedHeaders);
  }
  for (const [name, value] of headers ?? []) res.writeHeader(name, value);
}
