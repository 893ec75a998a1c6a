/** Sticky patterns of RFC 8259's tokens. */
const spaceSyntax = /[ \t\n\r]*/y;
const escapeSyntax = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const numberSyntax = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const wordSyntax = /true|false|null/y;

/** What may come next. */
type Expected = 'value' | 'value or ]' | 'key' | 'key or }' | 'colon' | 'comma or close' | 'end';

/**
 * Where a text stops being JSON: an index into it, its length when it ends too soon, -1 when it is JSON.
 * `JSON.parse` does not say so in every engine and version; this is the slow path after it refused.
 */
export function findJsonFault(text: string): number {
  /** The closing bracket of each open container. */
  const open: string[] = [];
  let expected: Expected = 'value';
  for (let at = match(spaceSyntax, text, 0); at < text.length; at = match(spaceSyntax, text, at)) {
    const char = text.charAt(at);
    const closing = open.at(-1);
    if (char === closing && (expected === 'comma or close' || expected.endsWith(char))) {
      open.pop();
      at++;
      expected = afterValue(open);
    } else if (expected === 'comma or close') {
      if (char !== ',') return at;
      at++;
      expected = closing === '}' ? 'key' : 'value';
    } else if (expected === 'colon') {
      if (char !== ':') return at;
      at++;
      expected = 'value';
    } else if (expected === 'end') {
      return at;
    } else if (expected === 'value' || expected === 'value or ]') {
      if (char === '[' || char === '{') {
        open.push(char === '[' ? ']' : '}');
        expected = char === '[' ? 'value or ]' : 'key or }';
        at++;
      } else {
        const end = plainEnd(text, at, char);
        if (end < 0) return -end - 1;
        at = end;
        expected = afterValue(open);
      }
    } else {
      if (char !== '"') return at;
      const end = plainEnd(text, at, char);
      if (end < 0) return -end - 1;
      at = end;
      expected = 'colon';
    }
  }
  return expected === 'end' ? -1 : text.length;
}

function afterValue(open: readonly string[]): Expected {
  return open.length === 0 ? 'end' : 'comma or close';
}

/** Where a string, number or word ends; `-fault - 1` when it has a fault. */
function plainEnd(text: string, at: number, char: string): number {
  if (char === '"') return stringEnd(text, at);
  const end = Math.max(match(numberSyntax, text, at), match(wordSyntax, text, at));
  return end > at ? end : -at - 1;
}

/** The same for a string. A loop, because one pattern for a string of megabytes could exhaust the matcher's stack. */
function stringEnd(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length) {
    const char = text.charAt(at);
    if (char === '"') return at + 1;
    const next = char === '\\' ? match(escapeSyntax, text, at) : char < ' ' ? at : at + 1;
    if (next === at) return -at - 1;
    at = next;
  }
  return -at - 1;
}

/** The end of a sticky pattern's match at `at`, or `at` when it does not match. */
function match(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
}
