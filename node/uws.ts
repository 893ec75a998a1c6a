import { createRequire } from 'node:module';
import type * as Uws from 'uWebSockets.js';

export type {
  HttpRequest,
  HttpResponse,
  TemplatedApp,
  WebSocket,
  us_listen_socket,
  us_socket_context_t,
} from 'uWebSockets.js';
export type UwsModule = typeof Uws;

/**
 * Loads µWebSockets. It reads the bound of the header block from the environment once, when it is loaded, so a process has one bound: the one of
 * its first node. Hence `require` here and no import anywhere.
 */
export function loadUws(headerBytesMax: number): UwsModule {
  process.env['UWS_HTTP_MAX_HEADERS_SIZE'] ??= String(headerBytesMax);
  return createRequire(import.meta.url)('uWebSockets.js') as UwsModule;
}
