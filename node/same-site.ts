import type { Config } from './config.js';

/**
 * Which pages may call. With auth configured a token is proof enough and origins are only limited when they are listed. In open mode
 * whoever reaches the node has all rights, so what a browser could be lured into sending must not count: the `Host` has
 * to be this machine (a foreign name that resolves to 127.0.0.1 is DNS rebinding) and the `Origin` absent, the node's own, or listed:
 * another port of this machine may be a page that came from elsewhere.
 */
export interface SameSiteRules {
  /** Whether a request with these headers may be served; '' stands for an absent header. */
  allows(host: string, origin: string): boolean;
  /** The origin to name in CORS answers; undefined when none is to be. */
  corsOrigin(host: string, origin: string): string | undefined;
  /** In open mode a POST has to declare JSON: a form or a plain-text post needs no preflight. */
  readonly demandsJson: boolean;
}

const localNames = new Set(['localhost', '127.0.0.1', '[::1]']);

/** How many origins that were turned away are told of: enough for whoever sets a node up, too few to fill a log. */
const toldMax = 20;

/** @param onRefused gets each origin that was turned away once, up to a number */
export function createSameSiteRules(
  config: Pick<Config, 'authConfigured' | 'allowedOrigins' | 'insecure'>,
  onRefused?: (origin: string) => void,
): SameSiteRules {
  const listed = config.allowedOrigins === undefined ? undefined : new Set(config.allowedOrigins);
  const open = !config.authConfigured && !config.insecure;
  const told = new Set<string>();
  const allowsOrigin = (host: string, origin: string): boolean => {
    if (origin === '' || isOwn(host, origin)) return true;
    if (listed !== undefined) return listed.has('*') || listed.has(origin);
    return config.authConfigured;
  };
  const allows = (host: string, origin: string): boolean => {
    if (open && !localNames.has(hostName(host))) return false;
    if (allowsOrigin(host, origin)) return true;
    if (told.size < toldMax && !told.has(origin)) {
      told.add(origin);
      onRefused?.(origin);
    }
    return false;
  };
  return {
    allows,
    corsOrigin: (host, origin) => (origin !== '' && allows(host, origin) ? origin : undefined),
    demandsJson: open,
  };
}

/** The host part of a `Host` header, without its port. */
function hostName(host: string): string {
  return host.replace(/:\d{1,5}$/, '').toLowerCase();
}

function isOwn(host: string, origin: string): boolean {
  return origin === `http://${host}` || origin === `https://${host}`;
}
