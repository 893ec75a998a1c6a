import { readFileSync } from 'node:fs';
import type { z } from 'zod';
import { settingsSchema, type Settings } from './config-schema.js';
import { clientEnv, configFileEnv, envPrefix, settings, type Setting } from './config-settings.js';

/** What a source sets, as far as it is sound, and what is wrong with it: one line each, without values. */
export interface SourceRead {
  readonly values: Settings;
  readonly problems: readonly string[];
}

/** Reads a JSON settings file. Faults name the file and the key. */
export function readSettingsFile(path: string): SourceRead {
  const source = `file ${path}`;
  let content: string;
  try {
    content = readFileSync(path, 'utf8');
  } catch (error) {
    return { values: {}, problems: [`${source}: cannot be read (${errorCode(error)})`] };
  }
  const parsed = parseJson(content);
  if (parsed === undefined) return { values: {}, problems: [`${source}: expected JSON`] };
  return check(parsed.value, (path) => [source, ...(path.length > 0 ? [path.join('.')] : [])].join(': '));
}

/** Reads the `TOPICAST_…` variables; other variables are none of its business. */
export function readEnvironment(env: Readonly<Record<string, string | undefined>>): SourceRead {
  const known = new Map(settings.map((s) => [s.env, s]));
  const others = new Set([configFileEnv, ...clientEnv]);
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  for (const [name, text] of Object.entries(env)) {
    if (text === undefined || !name.startsWith(envPrefix) || others.has(name)) continue;
    const setting = known.get(name);
    if (setting === undefined) {
      problems.push(
        `environment ${name}: unknown setting${suggestion(name, [...known.keys(), configFileEnv])}`,
      );
    } else {
      put(values, setting, readText(setting, text));
    }
  }
  return merge(
    check(
      values,
      labelled('environment ', (s) => s.env),
    ),
    problems,
  );
}

/** Reads flags by their camel-case key; texts are read like variables, `undefined` is not set. */
export function readFlags(flags: Readonly<Record<string, unknown>>): SourceRead {
  const known = new Map(settings.map((s) => [s.flag, s]));
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(flags)) {
    if (value === undefined) continue;
    const setting = known.get(name);
    if (setting === undefined) {
      problems.push(
        `flag ${flagName(name)}: unknown setting${suggestion(name, [...known.keys()], flagName)}`,
      );
    } else {
      put(values, setting, typeof value === 'string' ? readText(setting, value) : value);
    }
  }
  return merge(
    check(
      values,
      labelled('flag ', (s) => flagName(s.flag)),
    ),
    problems,
  );
}

/** `natsUrl` → `--nats-url`. */
export function flagName(flag: string): string {
  return `--${flag.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

function merge(read: SourceRead, problems: readonly string[]): SourceRead {
  return { values: read.values, problems: [...problems, ...read.problems] };
}

/** A text that does not fit its kind stays a text, and the schema says what is expected. */
function readText(setting: Setting, text: string): unknown {
  switch (setting.kind) {
    case 'text':
      return text;
    case 'number':
      return /^-?\d{1,15}$/.test(text) ? Number(text) : text;
    case 'boolean':
      return ({ '1': true, true: true, '0': false, false: false } as Record<string, boolean>)[text] ?? text;
    case 'list':
      return text.split(',').map((item) => item.trim());
    case 'json':
      return parseJson(text)?.value;
  }
}

function put(values: Record<string, unknown>, setting: Setting, value: unknown): void {
  const [key, inner] = setting.path;
  // A value that could not be read is kept as null, so that the schema refuses it instead of passing over it.
  const kept = value ?? null;
  values[key] = inner === undefined ? kept : { ...(values[key] as object | undefined), [inner]: kept };
}

type Labeller = (path: readonly PropertyKey[]) => string;

function labelled(prefix: string, nameOf: (setting: Setting) => string): Labeller {
  return (path) => {
    const setting = settings.find((s) => s.path.every((key, i) => key === path[i]));
    const rest = path.slice(setting?.path.length ?? 0).join('.');
    return `${prefix}${setting === undefined ? '' : nameOf(setting)}${rest === '' ? '' : ` ${rest}`}`;
  };
}

function check(input: unknown, label: Labeller): SourceRead {
  const result = settingsSchema.safeParse(input);
  if (result.success) return { values: result.data, problems: [] };
  return { values: {}, problems: result.error.issues.flatMap((issue) => wording(issue, label)) };
}

function wording(issue: z.core.$ZodIssue, label: Labeller): string[] {
  if (issue.code !== 'unrecognized_keys') return [`${label(issue.path)}: ${issue.message}`];
  const known = knownKeys(issue.path);
  return issue.keys.map((key) => `${label([...issue.path, key])}: unknown setting${suggestion(key, known)}`);
}

function knownKeys(path: readonly PropertyKey[]): readonly string[] {
  if (path.length === 0) return Object.keys(settingsSchema.shape);
  if (path[0] === 'limits') return settings.flatMap((s) => s.path.slice(1));
  return ['delivery', 'historyMax', 'historySec', 'conflateMs', 'presence'];
}

/** `__proto__` is refused: an object that is built from such JSON would silently lack the key. */
function parseJson(text: string): { readonly value: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(text, (key, inner: unknown) => {
      if (key === '__proto__') throw new SyntaxError('__proto__ is not a key');
      return inner;
    });
    return { value };
  } catch {
    // The parser's message quotes the text, which may hold secrets.
    return undefined;
  }
}

function suggestion(name: string, known: readonly string[], show = (s: string) => s): string {
  const scored = known.map((candidate) => ({ candidate, distance: editDistance(name, candidate) }));
  const best = scored.reduce((a, b) => (b.distance < a.distance ? b : a));
  return best.distance <= Math.max(2, name.length / 4) ? `; did you mean ${show(best.candidate)}?` : '';
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1]?.toLowerCase() === b[j - 1]?.toLowerCase() ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

/** The system's code of a failed read (`ENOENT`), which says enough and quotes nothing. */
export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'failed';
}
