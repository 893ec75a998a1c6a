import { CliFailure, UsageError, describe, oneLine } from './errors.js';

/** Where a node answers and how to be let in. */
export interface Target {
  /** `http:` or `https:`, with an optional base path. */
  readonly url: URL;
  /** A JWT or an API key. */
  readonly token?: string;
}

export interface ApiRequest {
  readonly method: 'GET' | 'POST';
  /** Below the base, already escaped: `v1/topics/a.b/messages`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Gives the request up early. */
  readonly signal?: AbortSignal;
}

export interface ApiAnswer {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly text: string;
}

/** Milliseconds until a request without an answer is given up. */
const answerMsMax = 30_000;

/** Reads `--url`. WebSocket addresses are taken as well, since that is what clients of a node are given. */
export function parseTarget(url: string, token: string | undefined): Target {
  const parsed = URL.canParse(url) ? new URL(url.replace(/^ws(s?):/i, 'http$1:')) : undefined;
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol)) {
    throw new UsageError(`not an http:// or https:// address: ${url}`);
  }
  return token === undefined || token === '' ? { url: parsed } : { url: parsed, token };
}

/** The address of a path below the target's base, with its query. */
export function addressOf(
  target: Target,
  path: string,
  query: Readonly<Record<string, string | undefined>> = {},
): URL {
  const url = new URL(target.url);
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/${path}`;
  url.hash = '';
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) url.searchParams.set(name, value);
  }
  return url;
}

/** Asks a node. Any status is an answer; throws `CliFailure` only when none came. */
export async function ask(target: Target, request: ApiRequest): Promise<ApiAnswer> {
  const headers: Record<string, string> = { ...request.headers };
  if (target.token !== undefined) headers['authorization'] = `Bearer ${target.token}`;
  if (request.body !== undefined) headers['content-type'] = 'application/json';
  const timeout = AbortSignal.timeout(answerMsMax);
  try {
    const response = await fetch(addressOf(target, request.path, request.query), {
      method: request.method,
      headers,
      redirect: 'manual',
      signal: request.signal === undefined ? timeout : AbortSignal.any([timeout, request.signal]),
      ...(request.body === undefined ? {} : { body: request.body }),
    });
    const text = await response.text();
    return { status: response.status, retryAfter: response.headers.get('retry-after'), text };
  } catch (error) {
    throw new CliFailure(`cannot reach ${target.url.origin}: ${describe(error)}`, { cause: error });
  }
}

/** Asks a node and returns the body of its answer; throws `CliFailure` when it refused. */
export async function call(target: Target, request: ApiRequest): Promise<string> {
  const answer = await ask(target, request);
  if (answer.status >= 200 && answer.status < 300) return answer.text;
  throw new CliFailure(refusal(answer));
}

/** A refusal on one line: the status, what the node said, when to come back. */
export function refusal(answer: ApiAnswer): string {
  const detail = errorOf(answer.text);
  const hint = answer.retryAfter === null ? '' : `; try again in ${answer.retryAfter} s`;
  return oneLine(`refused with ${answer.status}${detail === '' ? '' : ` ${detail}`}${hint}`);
}

function errorOf(text: string): string {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    // Not from a node (a proxy's page, say): the start of it is the best there is.
    return text.slice(0, 200);
  }
  if (typeof body !== 'object' || body === null || !('error' in body)) return '';
  const { error } = body;
  if (typeof error !== 'object' || error === null) return '';
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  const message = 'message' in error && typeof error.message === 'string' ? error.message : '';
  return [code, message].filter((part) => part !== '').join(': ');
}
