import { shouldReconnect } from '../protocol/codes.js';
import type { TopicRequest } from '../protocol/frames.js';
import { formatTopicRequest } from '../protocol/topic-request.js';
import { parseRetryAfter } from './backoff.js';

/** The part of `fetch` that the client uses, to learn why an upgrade was refused. */
export type FetchLike = (
  url: string,
  init: { readonly headers: Record<string, string> },
) => Promise<{ readonly status: number; readonly headers: { get(name: string): string | null } }>;

/** What a handshake says beside its token and topics. */
export interface HandshakeQuery {
  /** Who to be on a node that checks no tokens. */
  readonly user?: string | undefined;
  /** A name shown to operators. */
  readonly device?: string | undefined;
}

/** Beyond it positions travel in `subscribe` frames: the header block holds 16 KiB, and proxies' may hold less. */
const queryBytesMax = 12 * 1024;
/** What the token and the topics may take of the header block together. */
const headerBytesMax = 15 * 1024;
/** Of one `subscribe` frame; the server's own limit is 64 KiB. */
const frameBytesMax = 48 * 1024;
const probeMsMax = 10_000;

/**
 * The address of the node, with `http:` or `https:` and without a slash at its end. WebSocket addresses are taken as well; one without
 * a host belongs to the page. @throws TypeError for anything else
 */
export function baseOf(url: string): string {
  const { location } = globalThis as { location?: { readonly origin: string } };
  const full = url.startsWith('/') && location !== undefined ? location.origin + url : url;
  const base = full
    .replace(/^ws(?=s?:)/i, 'http')
    .replace(/[?#].*$/, '')
    .replace(/\/+$/, '');
  if (!/^https?:\/\/[^/]+/i.test(base)) throw new TypeError(`not an address of a node: ${url}`);
  return base;
}

/** Where to connect to, with `http:`; the probe asks there as it is. */
export function connectAddress(base: string, query: HandshakeQuery): string {
  const parts = Object.entries(query).flatMap(([name, value]: [string, string | undefined]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`],
  );
  return `${base}/v1/connect${parts.length > 0 ? `?${parts.join('&')}` : ''}`;
}

/** The same for the WebSocket, with its topics. */
export function socketAddress(address: string, topics: string): string {
  const socket = address.replace(/^http/i, 'ws');
  return topics === '' ? socket : `${socket}${socket.includes('?') ? '&' : '?'}topics=${topics}`;
}

/** The value of `topics` in the query; undefined when it does not fit beside the token. */
export function topicsQuery(
  requests: readonly TopicRequest[],
  token: string | undefined,
): string | undefined {
  // These are plain characters in a query, and escaping them would treble them.
  const text = encodeURIComponent(requests.map(formatTopicRequest).join(','));
  const query = text.replace(/%(2C|3A|40)/g, decodeURIComponent);
  const room = Math.min(queryBytesMax, headerBytesMax - (token?.length ?? 0));
  return query.length <= room ? query : undefined;
}

/** Splits requests so that each batch makes a frame that the server takes. */
export function batches<T>(requests: readonly T[]): T[][] {
  const result: T[][] = [];
  let bytes = Infinity;
  for (const request of requests) {
    const more = JSON.stringify(request).length + 1;
    bytes += more;
    if (bytes > frameBytesMax) {
      result.push([]);
      bytes = more;
    }
    result.at(-1)?.push(request);
  }
  return result;
}

export interface ProbeAnswer {
  readonly status: number;
  readonly retryMs: number | undefined;
}

/** What the upgrade would be answered, which a failed WebSocket does not tell; undefined when nobody answers. */
export async function probe(
  fetch: FetchLike,
  address: string,
  token: string | undefined,
): Promise<ProbeAnswer | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), probeMsMax);
  });
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  try {
    // It rejects when the network is away, and when the node lets this page's origin read nothing. Neither says more than the
    // connection that has just failed, so the wait goes on as it would have.
    const unanswered = (): undefined => undefined;
    const answer = await Promise.race([fetch(address, { headers }).catch(unanswered), late]);
    return answer && { status: answer.status, retryMs: parseRetryAfter(answer.headers.get('retry-after')) };
  } finally {
    clearTimeout(timer);
  }
}

/** How a connection ended. */
export interface End {
  /** Of the close, or of the `bye` before it. */
  readonly code: number;
  /** For people. */
  readonly reason: string;
  /** How long it lived after `welcome`, in ms; undefined when none came. */
  readonly welcomedMs?: number;
  /** How long the server wants to be left alone. */
  readonly retryMs?: number;
}

export type Verdict =
  | { readonly then: 'again'; readonly hintMs: number }
  | { readonly then: 'new token' }
  | { readonly then: 'never'; readonly code: 'unauthorized' | 'refused'; readonly reason: string };

/**
 * Whether to come back. Refusals that would only be repeated are final; a status that says nothing of this client (404, 400) is so only
 * until the node has been reached once, since a proxy may answer so while nodes are replaced.
 */
export function verdictOf(end: End, probed: ProbeAnswer | undefined, everWelcomed: boolean): Verdict {
  if (!shouldReconnect(end.code)) {
    return { then: 'never', code: 'refused', reason: `closed by the server: ${end.reason} (${end.code})` };
  }
  const status = probed?.status ?? 0;
  if (status === 401) return { then: 'new token' };
  const isFinal = status === 403 || (status >= 400 && status < 500 && status !== 429 && !everWelcomed);
  if (isFinal) {
    return { then: 'never', code: 'refused', reason: `the server refuses the connection (${status})` };
  }
  return { then: 'again', hintMs: Math.max(end.retryMs ?? 0, probed?.retryMs ?? 0) };
}
