/** One of the two axes of a chart with lines. */
export interface Axis {
  /** With its unit. */
  readonly title: string;
  /** On `log`, points that are not above 0 are left out. */
  readonly scale: 'linear' | 'log';
  /** On `log`: what stands on it, in place of decades and steps within them. */
  readonly ticks?: readonly Tick[];
}

export interface Tick {
  readonly at: number;
  readonly text: string;
}

/**
 * The ticks of a log axis: decades, and as many steps within them as the range leaves room for; the range is closed by one at either end.
 *
 * @param values above 0, one at least
 */
export function logTicks(values: readonly number[]): Tick[] {
  const low = Math.min(...values);
  const high = Math.max(...values);
  const steps = stepsFor(high / low);
  const all: number[] = [];
  for (let decade = Math.floor(Math.log10(low)); decade <= Math.ceil(Math.log10(high)); decade++) {
    // Through text, because 3 * 10 ** -1 is not 0.3.
    all.push(...steps.map((step) => Number(`${step}e${decade}`)));
  }
  const from = all.findLastIndex((tick) => tick <= low);
  const to = all.findIndex((tick) => tick >= high);
  // One value that is a tick itself would make a range of nothing.
  const shown = all.slice(Math.max(0, from), Math.max(to, from + 1) + 1);
  return shown.map((at) => ({ at, text: shortNumber(at) }));
}

function stepsFor(ratio: number): readonly number[] {
  if (ratio > 300) return [1];
  return ratio > 6 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 7];
}

/** 1,500 as 1.5k, 0.25 as it is: for axes, where there is little room. */
export function shortNumber(value: number): string {
  const size = Math.abs(value);
  const [divisor, unit] =
    size >= 1e9 ? [1e9, 'G'] : size >= 1e6 ? [1e6, 'M'] : size >= 1e3 ? [1e3, 'k'] : [1, ''];
  return `${Number((value / divisor).toPrecision(6))}${unit}`;
}
