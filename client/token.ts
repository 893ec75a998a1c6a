import { textOf, TopicastError } from './errors.js';

/** What the client reads of its own token. Nothing is believed because of it: only the server checks signatures. */
export interface Claims {
  readonly sub?: string;
  /** Seconds since the Unix epoch. */
  readonly exp?: number;
}

export interface TokenOptions {
  /** A token that never changes. */
  readonly token?: string;
  /** Asked for a token at the first connect, and again when one has ended, is about to, or was refused. */
  readonly getToken?: () => string | Promise<string>;
}

/** A token this close to its end is not worth a connect. */
const spareMs = 5_000;

/** The token of the connections: kept while it lasts, fetched anew when it does not. */
export class Tokens {
  readonly #options: TokenOptions;
  #current: string | undefined;

  constructor(options: TokenOptions) {
    this.#options = options;
    this.#current = options.token;
  }

  /** Whether another token can be had when this one is refused. */
  get renewable(): boolean {
    return this.#options.getToken !== undefined;
  }

  get claims(): Claims {
    return readClaims(this.#current);
  }

  /** A token that lasts, as far as can be told; undefined when the client has none. @throws TopicastError `token` */
  async get(): Promise<string | undefined> {
    const { exp } = this.claims;
    const lasts = exp === undefined || exp * 1000 - Date.now() > spareMs;
    return (this.#current !== undefined && lasts) || !this.renewable ? this.#current : this.renew();
  }

  /** @throws TopicastError `token` */
  async renew(): Promise<string | undefined> {
    const { getToken } = this.#options;
    try {
      if (getToken !== undefined) this.#current = await getToken();
    } catch (cause) {
      throw new TopicastError('token', `getToken failed: ${textOf(cause)}`, { cause });
    }
    return this.#current;
  }

  /** The server does not take it any more. */
  expire(): void {
    if (this.renewable) this.#current = undefined;
  }
}

/** The claims of a JWT; none of what is no JWT, or where nothing decodes base64. */
export function readClaims(token: string | undefined): Claims {
  const body = token?.split('.')[1];
  const { atob } = globalThis as { atob?: (text: string) => string };
  if (body === undefined || atob === undefined) return {};
  try {
    const binary = atob(body.replace(/-/g, '+').replace(/_/g, '/'));
    const bytes = Array.from(binary, (char) => `%${char.charCodeAt(0).toString(16).padStart(2, '0')}`);
    const { sub, exp } = JSON.parse(decodeURIComponent(bytes.join(''))) as { sub?: unknown; exp?: unknown };
    return {
      ...(typeof sub === 'string' && { sub }),
      ...(typeof exp === 'number' && { exp }),
    };
  } catch {
    return {};
  }
}
