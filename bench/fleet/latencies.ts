import { build, decodeFromCompressedBase64, encodeIntoCompressedBase64 } from 'hdr-histogram-js';

/**
 * Latencies as an HDR histogram: three digits kept from a microsecond to an hour, no allocation when one is recorded, and a text form that other
 * processes' are added to. Node's own histogram (`perf_hooks`) merges within one process only: its contents cannot be sent.
 */
export class Latencies {
  readonly #histogram = build({
    bitBucketSize: 32,
    autoResize: false,
    lowestDiscernibleValue: 1,
    highestTrackableValue: longestUs,
    numberOfSignificantValueDigits: 3,
  });

  get count(): number {
    return this.#histogram.totalCount;
  }

  record(us: number): void {
    this.#histogram.recordValue(us < 1 ? 1 : us > longestUs ? longestUs : Math.round(us));
  }

  /** Adds what `text()` of another one has returned; '' adds nothing. */
  add(text: string): void {
    if (text !== '') this.#histogram.add(decodeFromCompressedBase64(text));
  }

  /** Compressed, base64, version 2 of the HDR format; '' when nothing was recorded. */
  text(): string {
    return this.count === 0 ? '' : encodeIntoCompressedBase64(this.#histogram);
  }

  reset(): void {
    this.#histogram.reset();
  }

  /** @param share 0 to 1 @returns ms; NaN when nothing was recorded */
  ms(share: number): number {
    if (this.count === 0) return NaN;
    return this.#histogram.getValueAtPercentile(share * 100) / 1000;
  }

  /** Points of the distribution for a chart, ascending. */
  curve(): [share: number, ms: number][] {
    return this.count === 0 ? [] : curveShares.map((share) => [share, this.ms(share)]);
  }
}

const longestUs = 3_600_000_000;
const curveShares = [
  0, 0.1, 0.25, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.975, 0.99, 0.995, 0.999, 0.9995, 0.9999,
  0.99999, 1,
];

/** All of them in one. */
export function mergeLatencies(texts: readonly string[]): Latencies {
  const merged = new Latencies();
  for (const text of texts) merged.add(text);
  return merged;
}
