import { errorBody, jsonType, sendReply, type HttpErrorCode, type HttpHeader } from './http-io.js';
import type { HttpRequest, HttpResponse } from './uws.js';

/** What is read of each request. µWS forgets a request when its handler returns, so all of it is read at once; '' when absent. */
const headerNames = [
  'host',
  'origin',
  'authorization',
  'content-type',
  'content-length',
  'x-api-key',
  'idempotency-key',
  'if-none-match',
  'last-event-id',
  'sec-websocket-protocol',
  'upgrade',
] as const;
export type KnownHeader = (typeof headerNames)[number];

/**
 * One request and the one answer to it. µWS throws when a response is touched after the client has left, so nobody else holds it: after
 * the end, whoever caused it, every call here is without effect.
 */
export class Exchange {
  /** In capitals. */
  readonly method: string;
  /** The raw query string. */
  readonly query: string;
  readonly params: URLSearchParams;
  readonly corsOrigin: string | undefined;
  readonly #res: HttpResponse;
  readonly #headers: Readonly<Record<KnownHeader, string>>;
  readonly #segments: readonly string[];
  readonly #onEnd: (() => void)[] = [];
  #ended = false;

  /**
   * To be made in the handler itself, before anything asynchronous.
   * @param segments how many parameters the route has
   */
  constructor(
    res: HttpResponse,
    req: HttpRequest,
    segments: number,
    corsOrigin: (host: string, origin: string) => string | undefined,
  ) {
    this.#res = res;
    this.method = req.getMethod().toUpperCase();
    this.query = req.getQuery();
    this.params = new URLSearchParams(this.query);
    this.#headers = Object.fromEntries(headerNames.map((name) => [name, req.getHeader(name)])) as Record<
      KnownHeader,
      string
    >;
    this.#segments = Array.from({ length: segments }, (_, i) => req.getParameter(i));
    this.corsOrigin = corsOrigin(this.header('host'), this.header('origin'));
    res.onAborted(() => this.#end());
  }

  /** Answered, handed over, or given up by the client. */
  get isEnded(): boolean {
    return this.#ended;
  }

  header(name: KnownHeader): string {
    return this.#headers[name];
  }

  /** A parameter of the path, percent-decoded; undefined when that cannot be done. */
  segment(index: number): string | undefined {
    const raw = this.#segments[index] ?? '';
    try {
      return decodeURIComponent(raw);
    } catch {
      // `%zz` or bytes that are not UTF-8: the caller answers that it is malformed.
      return undefined;
    }
  }

  /**
   * Reads the body; to be called before anything asynchronous, or µWS drops what comes first. Undefined: there is nobody to answer any more. A
   * body of more than `bytesMax` is answered here, with 413, as soon as that is known, and what still comes of it is not kept.
   */
  readBody(bytesMax: number): Promise<Uint8Array | undefined> {
    if (Number(this.header('content-length')) > bytesMax) {
      this.#tooLarge(bytesMax);
      return Promise.resolve(undefined);
    }
    return new Promise((resolve) => {
      let chunks: Uint8Array[] = [];
      let size = 0;
      this.#onEnd.push(() => {
        chunks = [];
        resolve(undefined);
      });
      this.#res.onData((chunk, isLast) => {
        if (this.#ended) return;
        size += chunk.byteLength;
        if (size > bytesMax) return this.#tooLarge(bytesMax);
        // µWS takes the memory of a chunk back.
        chunks.push(new Uint8Array(chunk.slice(0)));
        if (isLast) resolve(Buffer.concat(chunks, size));
      });
    });
  }

  json(status: number, body: unknown, headers: readonly HttpHeader[] = []): void {
    this.text(status, jsonType, JSON.stringify(body), headers);
  }

  /** A body that is written already. */
  text(status: number, contentType: string, body: string, headers: readonly HttpHeader[] = []): void {
    if (this.#ended) return;
    const { corsOrigin } = this;
    const headOnly = this.method === 'HEAD';
    sendReply(this.#res, { status, contentType, body, headers, corsOrigin, headOnly });
    this.#end();
  }

  error(status: number, code: HttpErrorCode, message: string, headers: readonly HttpHeader[] = []): void {
    this.text(status, jsonType, errorBody(code, message), headers);
  }

  /**
   * Hands the response over to somebody who writes it bit by bit and looks after it from now on. Not called when the client has left.
   * @param left called when the client leaves
   */
  handOver(write: (res: HttpResponse) => void, left: () => void): void {
    if (this.#ended) return;
    this.#onEnd.push(left);
    write(this.#res);
  }

  /** Lets somebody else write the whole answer, at once. Not called when the client has left. */
  answerWith(write: (res: HttpResponse) => void): void {
    if (this.#ended) return;
    write(this.#res);
    this.#end();
  }

  #tooLarge(bytesMax: number): void {
    this.error(413, 'payload_too_large', `the body has at most ${bytesMax} bytes`);
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    for (const end of this.#onEnd) end();
  }
}
