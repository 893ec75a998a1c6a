import type { FetchLike } from './handshake.js';
import type { SocketClose, SocketFactory, SocketLike, SocketMessage } from './socket.js';

/** A socket task of `wx.connectSocket` (WeChat); those of Alipay's, Douyin's and uni-app's `connectSocket` look the same. */
export interface WxSocketTask {
  onOpen(listener: (event: never) => void): void;
  onMessage(listener: (event: { readonly data: string | ArrayBuffer }) => void): void;
  onClose(listener: (event: { readonly code?: number; readonly reason?: string }) => void): void;
  onError(listener: (event: { readonly errMsg?: string }) => void): void;
  send(options: { data: string | ArrayBuffer; fail?: (error: unknown) => void }): void;
  close(options: { code?: number; reason?: string }): void;
}

/** The part of `wx` that sockets need. */
export interface WxSockets {
  connectSocket(options: { url: string; protocols: string[]; fail?: (error: unknown) => void }): WxSocketTask;
}

/** The part of `wx` that requests need. */
export interface WxRequests {
  request(options: {
    url: string;
    method: 'GET';
    header: Record<string, string>;
    success: (answer: { statusCode: number; header: Record<string, string> }) => void;
    fail: (error: { errMsg?: string }) => void;
  }): unknown;
}

/** Sockets of a mini-program, for `connect(url, { webSocket: fromWxSocket(wx) })`. */
export function fromWxSocket(wx: WxSockets): SocketFactory {
  return (url, protocols) => new WxSocket(wx, url, protocols);
}

/** Requests of a mini-program, for `connect(url, { fetch: fromWxRequest(wx) })`: without, a refusal cannot be told from a bad network. */
export function fromWxRequest(wx: WxRequests): FetchLike {
  return (url, { headers }) =>
    new Promise((resolve, reject) => {
      wx.request({
        url,
        method: 'GET',
        header: headers,
        success: ({ statusCode, header }) =>
          resolve({ status: statusCode, headers: { get: (name) => lookUp(header, name) } }),
        fail: ({ errMsg }) => reject(new Error(errMsg ?? 'the request failed')),
      });
    });
}

class WxSocket implements SocketLike {
  /** Binary messages are `ArrayBuffer` always. */
  binaryType = 'arraybuffer';
  onopen: ((event: never) => void) | null = null;
  onmessage: ((event: SocketMessage) => void) | null = null;
  onclose: ((event: SocketClose) => void) | null = null;
  onerror: ((event: never) => void) | null = null;
  readonly #task: WxSocketTask;

  constructor(wx: WxSockets, url: string, protocols: string[]) {
    const failed = (error: unknown): void => this.onclose?.({ code: 1006, reason: reasonOf(error) });
    this.#task = wx.connectSocket({ url, protocols, fail: failed });
    this.#task.onMessage(({ data }) => this.onmessage?.({ data }));
    this.#task.onClose(({ code = 1006, reason = '' }) => this.onclose?.({ code, reason }));
    // No close follows a connect that failed.
    this.#task.onError(failed);
  }

  send(data: string | Uint8Array): void {
    const message = typeof data === 'string' ? data : exactBuffer(data);
    this.#task.send({
      data: message,
      fail: (error) => this.onclose?.({ code: 1006, reason: reasonOf(error) }),
    });
  }

  close(code = 1000, reason = ''): void {
    this.#task.close({ code, reason });
  }
}

/** `ArrayBuffer` of exactly these bytes; a view's buffer may hold more. */
function exactBuffer(bytes: Uint8Array): ArrayBuffer {
  return new Uint8Array(bytes).buffer;
}

function reasonOf(error: unknown): string {
  const { errMsg } = error as { errMsg?: string };
  return errMsg ?? 'the connection failed';
}

/** Header names come in any case. */
function lookUp(header: Readonly<Record<string, string>>, name: string): string | null {
  const found = Object.entries(header).find(([key]) => key.toLowerCase() === name.toLowerCase());
  return found?.[1] ?? null;
}
