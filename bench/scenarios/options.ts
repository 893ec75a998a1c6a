import { join } from 'node:path';

/** One option of a scenario: `--warm-up <n>` for the key `warmUp`. */
export interface OptionSpec<T> {
  readonly help: string;
  /** What its value is called, such as `<n>`; '' for an option without one. */
  readonly argument: string;
  readonly fallback: T;
  /** @throws OptionError when the text is no value for it */
  parse(text: string): T;
}

export type OptionSpecs = Readonly<Record<string, OptionSpec<unknown>>>;

export type OptionValues<S extends OptionSpecs> = {
  readonly [K in keyof S]: S[K] extends OptionSpec<infer T> ? T : never;
};

/** The message says what was expected, as the end of a sentence on the command line. */
export class OptionError extends Error {}

export function whole(help: string, fallback: number, min: number, max: number): OptionSpec<number> {
  return {
    help,
    argument: '<n>',
    fallback,
    parse(text) {
      const value = Number(text);
      if (/^\d+$/.test(text) && value >= min && value <= max) return value;
      throw new OptionError(`Expected a whole number from ${min} to ${max}.`);
    },
  };
}

/** A number that may have a fraction. */
export function decimal(help: string, fallback: number, min: number, max: number): OptionSpec<number> {
  return {
    help,
    argument: '<n>',
    fallback,
    parse(text) {
      const value = Number(text);
      if (text.trim() !== '' && value >= min && value <= max) return value;
      throw new OptionError(`Expected a number from ${min} to ${max}.`);
    },
  };
}

export function choice<T extends string>(help: string, all: readonly T[], fallback: T): OptionSpec<T> {
  return {
    help: `${help}: ${all.join(', ')}`,
    argument: '<name>',
    fallback,
    parse: (text) => oneOf(all, text),
  };
}

/** Several of a set, comma-separated. */
export function choices<T extends string>(
  help: string,
  all: readonly T[],
  fallback: readonly T[],
): OptionSpec<readonly T[]> {
  return {
    help: `${help}, comma-separated, of: ${all.join(', ')}`,
    argument: '<names>',
    fallback,
    parse: (text) => text.split(',').map((name) => oneOf(all, name)),
  };
}

/** Several whole numbers, comma-separated. */
export function wholes(
  help: string,
  fallback: readonly number[],
  min: number,
  max: number,
): OptionSpec<readonly number[]> {
  const each = whole(help, min, min, max);
  return {
    help,
    argument: '<n,n>',
    fallback,
    parse: (list) => list.split(',').map((text) => each.parse(text)),
  };
}

export function text(help: string, argument: string, fallback = ''): OptionSpec<string> {
  return { help, argument, fallback, parse: (value) => value };
}

export function flag(help: string): OptionSpec<boolean> {
  return { help, argument: '', fallback: false, parse: () => true };
}

/** For scenarios that read memory: V8 gives back what it does not need after some ten seconds. */
export const settleOption = whole('seconds for which memory has to be steady before it is read', 15, 1, 100);

/** Where servers write CPU profiles. */
export const profileOption = text('let the servers write CPU profiles there; slows them down', '<dir>');

/** Of Node.js, for the value of `profileOption`. */
export function profileFlags(dir: string, ...below: string[]): string[] {
  return dir === '' ? [] : ['--cpu-prof', `--cpu-prof-dir=${join(dir, ...below)}`];
}

/** `warmUp` → `--warm-up` */
export function flagOf(key: string): string {
  return `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

function oneOf<T extends string>(all: readonly T[], name: string): T {
  const known = all.find((one) => one === name);
  if (known !== undefined) return known;
  throw new OptionError(`Expected ${all.join(', ')}.`);
}
