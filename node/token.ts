import type { PayloadFormat } from '../protocol/payload.js';
import { failure, success, type Result } from '../protocol/result.js';

/**
 * Where a token may stand in a request. It is taken from the first place that has one: the offered subprotocols (browsers
 * cannot set headers on a WebSocket), then the `Authorization` header, then, where allowed, the query. The others are then not looked
 * at: a faulty token is not rescued by a second one elsewhere.
 */

const subprotocols: ReadonlyMap<string, PayloadFormat> = new Map([
  ['topicast.v1.json', 'json'],
  ['topicast.v1.msgpack', 'msgpack'],
]);
const bearerPrefix = 'bearer.';

/** What a handshake's `Sec-WebSocket-Protocol` asks for. */
export interface OfferedProtocols {
  readonly codec: PayloadFormat;
  /** The subprotocol to answer with; absent when none was offered, and then none may be answered. */
  readonly answer?: string;
  readonly bearer?: string;
}

/**
 * Reads the header; an empty or absent one means JSON. The first known subprotocol is taken, in the client's order.
 * Refused (`invalid_frame`, answered with 400): offers without a known subprotocol, a bearer alone included, because a browser
 * gives up a connection on which nothing of its offer was chosen; and bearers that differ, because it is
 * not clear who is calling.
 */
export function readProtocols(header: string | undefined): Result<OfferedProtocols> {
  const offered = (header ?? '').split(',').map((item) => item.trim());
  const names = offered.filter((item) => item !== '');
  if (names.length === 0) return success({ codec: 'json' });
  const bearers = new Set(names.filter((name) => name.startsWith(bearerPrefix)));
  if (bearers.size > 1) return failure('invalid_frame', 'several bearers are offered; expected one');
  const answer = names.find((name) => subprotocols.has(name));
  const codec = answer === undefined ? undefined : subprotocols.get(answer);
  if (answer === undefined || codec === undefined) {
    const known = [...subprotocols.keys()].join(' or ');
    return failure('invalid_frame', `expected the subprotocol ${known} among those offered`);
  }
  const bearer = [...bearers][0]?.slice(bearerPrefix.length) ?? '';
  return success(bearer === '' ? { codec, answer } : { codec, answer, bearer });
}

/** The credential of an `Authorization: Bearer` header; undefined for any other scheme or shape. */
export function bearerOf(authorization: string | undefined): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1];
}

/** The `token` parameter of a raw query string (without `?`); the first one counts, an empty one is none. */
export function queryTokenOf(query: string | undefined): string | undefined {
  const token = new URLSearchParams(query ?? '').get('token');
  return token === null || token === '' ? undefined : token;
}

export interface TokenPlaces {
  /** From `readProtocols`. */
  readonly bearer?: string | undefined;
  /** The `Authorization` header. */
  readonly authorization?: string | undefined;
  /** The raw query string. */
  readonly query?: string | undefined;
}

/** The token of a request, from the first place that has one. An `Authorization` header of another scheme is no token. */
export function tokenOf(places: TokenPlaces, allowQueryToken: boolean): string | undefined {
  const token = places.bearer ?? bearerOf(places.authorization);
  return token ?? (allowQueryToken ? queryTokenOf(places.query) : undefined);
}
