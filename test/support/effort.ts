/**
 * How many of `full` generated cases a test runs: all of them, and a sixth when `TOPICAST_TEST_QUICK` is 1, as `npm run check` has it, which is run
 * before each commit. `npm test` runs all.
 */
export function casesOf(full: number): number {
  return process.env['TOPICAST_TEST_QUICK'] === '1' ? Math.ceil(full / 6) : full;
}
