/**
 * Keeps secrets out of what people read: log lines, printed settings, error messages.
 */

const mask = '***';

/** A URL or request target with its `token` parameters and its user and password masked. Works on fragments too. */
export function redactUrl(url: string): string {
  const mark = url.indexOf('?');
  const address = redactUserInfo(mark < 0 ? url : url.slice(0, mark));
  if (mark < 0) return address;
  const fields = url
    .slice(mark + 1)
    .split('&')
    .map(redactField);
  return `${address}?${fields.join('&')}`;
}

/** Everything before the `@` of the host: NATS takes a bare token there. */
function redactUserInfo(address: string): string {
  const scheme = address.indexOf('://');
  const start = scheme < 0 ? 0 : scheme + 3;
  const slash = address.indexOf('/', start);
  const at = address.lastIndexOf('@', slash < 0 ? undefined : slash);
  return at < start ? address : `${address.slice(0, start)}${mask}${address.slice(at)}`;
}

function redactField(field: string): string {
  const equals = field.indexOf('=');
  if (equals < 0) return field;
  const name = field.slice(0, equals);
  // `%74oken=` is the same parameter to whoever reads the query.
  return /token/i.test(unescaped(name)) ? `${name}=${mask}` : field;
}

function unescaped(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    // Not valid percent encoding: it cannot be read as a token by this name either.
    return name;
  }
}

/**
 * A text with everything that looks like a credential masked: JSON web tokens, bearer credentials, `token=` values and
 * passwords in URLs. Linear in the length of the text.
 */
export function redactText(text: string): string {
  return text
    .replace(/(?<![\w-])eyJ[\w-]*\.[\w-]*(?:\.[\w-]*)?/g, mask)
    .replace(/\b(bearer[ .])[^\s",]+/gi, `$1${mask}`)
    .replace(/\b(token=)[^\s"&#]+/gi, `$1${mask}`)
    .replace(/(:\/\/)[^\s/"@]{1,512}@/g, `$1${mask}@`);
}
