/** What a message says of itself: when it was meant to leave, and its number. */
export interface Marker {
  /** µs on the machine's monotonic clock, which all its processes share. */
  readonly dueUs: number;
  /** Counted from 0. */
  readonly number: number;
}

const fixedChars = '{"t":,"n":,"p":""}'.length;

export function nowUs(): number {
  return Number(process.hrtime.bigint() / 1000n);
}

/** JSON of exactly `bytes` characters, if the numbers leave room for that. */
export function payloadText({ dueUs, number }: Marker, bytes: number): string {
  const padding = bytes - fixedChars - String(dueUs).length - String(number).length;
  return `{"t":${dueUs},"n":${number},"p":"${'x'.repeat(Math.max(0, padding))}"}`;
}

/** Finds the marker in a frame whose last field is such a payload. */
export function readMarker(bytes: Buffer, start: number, end: number): Marker {
  const text = bytes.toString('latin1', start, end);
  const match = /\{"t":(\d+),"n":(\d+),/.exec(text);
  if (match === null) throw new Error(`a message without a marker: ${text.slice(0, 200)}`);
  return { dueUs: Number(match[1]), number: Number(match[2]) };
}
