import { readFileSync } from 'node:fs';

export const scriptNames = [
  'register',
  'refresh',
  'remove',
  'sessions',
  'leave',
  'push',
  'pending',
  'acknowledge',
] as const;

export type ScriptName = (typeof scriptNames)[number];

/** The Lua texts by name, as they are sent. They lie beside this module, in the sources and in what is built. */
export function readScripts(): Map<ScriptName, string> {
  const folder = new URL('lua/', import.meta.url);
  const read = (name: string): string => readFileSync(new URL(`${name}.lua`, folder), 'utf8');
  const common = read('common');
  return new Map(scriptNames.map((name) => [name, `${common}\n${read(name)}`]));
}
