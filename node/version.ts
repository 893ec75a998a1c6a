import { existsSync, readFileSync } from 'node:fs';

/** The version of the program, as `package.json` has it. It stands one level up from the sources, and two from what is built of them. */
export const version = readVersion();

function readVersion(): string {
  const own = new URL('../package.json', import.meta.url);
  const url = existsSync(own) ? own : new URL('../../package.json', import.meta.url);
  const { version: text } = JSON.parse(readFileSync(url, 'utf8')) as { readonly version: string };
  return text;
}
