import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { Signal } from './signal.js';
import type { TokenClaims } from './tokens.js';

/** A key set URL that answers only when it is told to. */
export class KeySet {
  readonly url: string;
  readonly #server: Server;
  readonly #signal: Signal;
  readonly #waiting: ServerResponse[];
  readonly #keys: Awaited<ReturnType<typeof generateKeyPair>>;

  private constructor(server: Server, waiting: ServerResponse[], signal: Signal, keys: KeySet['keys']) {
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
    this.#server = server;
    this.#waiting = waiting;
    this.#signal = signal;
    this.#keys = keys;
  }

  static async start(): Promise<KeySet> {
    const keys = await generateKeyPair('ES256');
    const waiting: ServerResponse[] = [];
    const signal = new Signal();
    const server = createServer((_request, response) => {
      waiting.push(response);
      signal.notify();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new KeySet(server, waiting, signal, keys);
  }

  get keys() {
    return this.#keys;
  }

  sign(sub: string, can: TokenClaims['can'] = { sub: ['>'] }): Promise<string> {
    return new SignJWT({ sub, can })
      .setProtectedHeader({ alg: 'ES256', kid: 'k1' })
      .setAudience('tests')
      .setIssuer('tests')
      .setExpirationTime('10m')
      .sign(this.#keys.privateKey);
  }

  /** Waits until the node asks for the keys. */
  asked(): Promise<void> {
    return this.#signal.until('the node asks for the keys', () => this.#waiting.length > 0);
  }

  answer(): void {
    void exportJWK(this.#keys.publicKey).then((jwk) => {
      const body = JSON.stringify({ keys: [{ ...jwk, kid: 'k1', alg: 'ES256', use: 'sig' }] });
      for (const response of this.#waiting) {
        response.setHeader('content-type', 'application/json').end(body);
      }
    });
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
