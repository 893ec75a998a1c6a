import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Exchange } from './http-exchange.js';
import { sendReply, writeHead, type HttpHeader } from './http-io.js';
import type { Logger } from './log.js';

/** One file of the console, as it is answered. */
export interface ConsoleFile {
  readonly contentType: string;
  readonly body: Uint8Array;
  readonly etag: string;
}

const contentTypes = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
} as const;

/** Path of the URL to the file, from this folder. Nothing else is served, whatever a request names. */
const files = {
  '/': './console/index.html',
  ...Object.fromEntries(
    [
      'console.css',
      'icon.svg',
      'api.js',
      'cluster.js',
      'dom.js',
      'format.js',
      'live.js',
      'main.js',
      'message-log.js',
      'rates.js',
      'session.js',
      'sparkline.js',
    ].map((name) => [`/console/${name}`, `./console/${name}`]),
  ),
  // The second is what the first loads when MessagePack is asked for.
  '/console/topicast.min.js': '../client/topicast.min.js',
  '/console/topicast-msgpack.min.js': '../client/topicast-msgpack.min.js',
} as const;

/** Scripts, styles and connections of the node itself, and nothing else: what a message says stays text. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "form-action 'none'",
].join('; ');

const securityHeaders: readonly HttpHeader[] = [
  ['Content-Security-Policy', contentSecurityPolicy],
  ['Referrer-Policy', 'no-referrer'],
  ['Cross-Origin-Opener-Policy', 'same-origin'],
];

/** Reads the console, by the path of each URL. A file that is missing is left out, and the log says so. */
export function loadConsoleFiles(log: Pick<Logger, 'warn'>): Map<string, ConsoleFile> {
  const loaded = new Map<string, ConsoleFile>();
  for (const [path, file] of Object.entries(files)) {
    try {
      const body = readFileSync(new URL(file, import.meta.url));
      const extension = file.slice(file.lastIndexOf('.') + 1) as keyof typeof contentTypes;
      const digest = createHash('sha256').update(body).digest('base64url').slice(0, 22);
      loaded.set(path, { contentType: contentTypes[extension], body, etag: `"${digest}"` });
    } catch (error) {
      log.warn({ err: error, path }, 'a file of the console cannot be read; build the project anew');
    }
  }
  return loaded;
}

/** Answers a file, or that the browser has it already. Browsers ask each time, so that a new version is a new console at once. */
export function serveConsoleFile(exchange: Exchange, { body, contentType, etag }: ConsoleFile): void {
  const { corsOrigin, method } = exchange;
  const headers: readonly HttpHeader[] = [['ETag', etag], ...securityHeaders];
  const options = { headers, corsOrigin, cacheControl: 'no-cache' };
  exchange.answerWith((res) => {
    if (!isHeld(exchange.header('if-none-match'), etag)) {
      return sendReply(res, { ...options, status: 200, contentType, body, headOnly: method === 'HEAD' });
    }
    res.cork(() => {
      writeHead(res, 304, options);
      res.endWithoutBody();
    });
  });
}

/** A proxy that compresses makes tags weak. */
function isHeld(ifNoneMatch: string, etag: string): boolean {
  return ifNoneMatch.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag);
}
