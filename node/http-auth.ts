import type { Principal } from './auth.js';
import type { Exchange } from './http-exchange.js';
import type { HttpServices } from './http-services.js';
import { tokenOf } from './token.js';

/**
 * Turns away what no token makes right: in open mode a page of another site must not be able to act through somebody's browser. Synchronous,
 * so that the body can be read after it. @returns whether the request may go on; otherwise it is answered
 */
export function isAllowedSite(exchange: Exchange, { sameSite }: Pick<HttpServices, 'sameSite'>): boolean {
  if (!sameSite.allows(exchange.header('host'), exchange.header('origin'))) {
    exchange.error(403, 'forbidden', 'host or origin not allowed');
    return false;
  }
  if (sameSite.demandsJson && exchange.method === 'POST' && !declaresJson(exchange.header('content-type'))) {
    exchange.error(415, 'unsupported_media_type', 'expected Content-Type: application/json');
    return false;
  }
  return true;
}

/** Who is calling; undefined when that could not be shown, and then it is answered, the same for every fault. */
export async function authorise(
  exchange: Exchange,
  services: Pick<HttpServices, 'authenticator' | 'config'>,
): Promise<Principal | undefined> {
  const places = { authorization: authorizationOf(exchange), query: exchange.query };
  const token = tokenOf(places, services.config.allowQueryToken);
  const principal = await services.authenticator.authenticate(
    token,
    exchange.params.get('user') ?? undefined,
  );
  if (principal === undefined) {
    exchange.error(401, 'unauthorized', 'unauthorized', [['WWW-Authenticate', 'Bearer']]);
  }
  return principal;
}

/** `authorise` for the calls of operators. */
export async function authoriseAdmin(
  exchange: Exchange,
  services: Pick<HttpServices, 'authenticator' | 'config'>,
): Promise<Principal | undefined> {
  const principal = await authorise(exchange, services);
  if (principal === undefined || principal.grants.admin) return principal;
  exchange.error(403, 'forbidden', 'this call needs an admin grant');
  return undefined;
}

/** The `Authorization` header, or what it would be for the key of `X-Api-Key`. */
export function authorizationOf(exchange: Exchange): string {
  const authorization = exchange.header('authorization');
  const key = exchange.header('x-api-key');
  return authorization === '' && key !== '' ? `Bearer ${key}` : authorization;
}

function declaresJson(contentType: string): boolean {
  return /^\s*application\/json\s*(;|$)/i.test(contentType);
}
