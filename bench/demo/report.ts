import { codecs, kinds, sum, type Counts, type Verdict } from './verdict.js';

/** Where the report goes: standard output, or a test's collector. `isTTY` decides whether the live line stays in place. */
export interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean;
}

/** A line that shows how far the run is: in place on a terminal, a new one each second elsewhere. */
export class LiveLine {
  readonly #output: Output;
  readonly #text: () => string;
  readonly #timer: NodeJS.Timeout;
  #last = '';

  constructor(output: Output, text: () => string) {
    this.#output = output;
    this.#text = text;
    this.#timer = setInterval(() => this.#show(), output.isTTY === true ? 100 : 1_000);
  }

  /** Shows the line a last time. */
  stop(): void {
    clearInterval(this.#timer);
    this.#show();
    if (this.#output.isTTY === true) this.#output.write('\n');
  }

  #show(): void {
    const text = this.#text();
    if (this.#output.isTTY === true) this.#output.write(`\r\x1b[2K${text}`);
    else if (text !== this.#last) this.#output.write(`${text}\n`);
    this.#last = text;
  }
}

const names = { durable: 'durable topics', live: 'live topics', direct: 'direct' } as const;
const headings = ['', 'expected', 'received', 'lost', 'twice', 'out of order'];

/** The table of the end: each kind, and below it each codec. */
export function table(counts: Verdict['counts']): string {
  const rows = [headings];
  for (const kind of kinds) {
    rows.push(row(names[kind], sum(counts[kind])));
    for (const codec of codecs) rows.push(row(`  ${codec}`, counts[kind][codec]));
  }
  const widths = headings.map((_, column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)));
  const pad = (cell: string, column: number) =>
    column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0);
  return rows.map((cells) => cells.map(pad).join('   ').trimEnd()).join('\n');
}

function row(name: string, counts: Counts): string[] {
  const expected =
    counts.expected === counts.expectedMost
      ? number(counts.expected)
      : `${number(counts.expected)}–${number(counts.expectedMost)}`;
  const rest = [counts.received, counts.lost, counts.twice, counts.outOfOrder];
  return [name, expected, ...rest.map(number)];
}

export function number(value: number): string {
  return value.toLocaleString('en-US');
}

/** A list with a heading, cut short; nothing when it is empty. */
export function list(heading: string, lines: readonly string[], most = 10): string {
  if (lines.length === 0) return '';
  const rest = lines.length > most ? [`  … and ${number(lines.length - most)} more`] : [];
  return [heading, ...lines.slice(0, most).map((line) => `  ${line}`), ...rest, ''].join('\n');
}
