import type { HttpRequest } from './uws.js';

/**
 * Whether a request's line and headers are larger than allowed. µWS bounds only what it has to keep until the rest comes; a block that
 * arrives whole in one read gets through at several times that size.
 */
export function isHeaderBlockTooLarge(req: HttpRequest, bytesMax: number): boolean {
  // `GET  HTTP/1.1`, `?`, line ends: near enough, and never below the true size by more than a few bytes.
  // Undefined without a `?`, whatever its type says.
  const query = (req.getQuery() as string | undefined) ?? '';
  let bytes = req.getMethod().length + req.getUrl().length + query.length + 16;
  req.forEach((name, value) => {
    bytes += name.length + value.length + 4;
  });
  return bytes > bytesMax;
}

export const headerBlockTooLarge = 'the request line and headers are too large';
