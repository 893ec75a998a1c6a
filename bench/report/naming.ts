import { groupBy, type Labels, type SummaryRow } from './summary.js';

/** As many labels as tell the rows apart: one that is the same everywhere, or only changes along with those before it, is left out. */
export function tellingLabels(rows: readonly SummaryRow[]): string[] {
  const kept: string[] = [];
  const kinds = (names: readonly string[]): number =>
    new Set(rows.map(({ labels }) => JSON.stringify(names.map((name) => labels[name] ?? null)))).size;
  for (const name of labelNames(rows)) if (kinds([...kept, name]) > kinds(kept)) kept.push(name);
  return kept;
}

export function labelNames(rows: readonly SummaryRow[]): string[] {
  return [...new Set(rows.flatMap(({ labels }) => Object.keys(labels)))];
}

/** A text speaks for itself, a number needs to be told what it is of, and is one word because names are broken into lines: `node-live, sockets 1000`. */
export function rowName(labels: Labels, names: readonly string[], otherwise: string): string {
  const parts = names.flatMap((name) => {
    const value = labels[name];
    if (value === undefined) return [];
    return [typeof value === 'number' ? `${name} ${value}` : value];
  });
  return parts.length === 0 ? otherwise : parts.join(', ');
}

/** What rows may be drawn over, the first that fits, and how many values make a curve of them: two numbers of nodes are rather compared. */
const growing = Object.entries({ sockets: 2, topics: 2, users: 2, nodes: 3, rate: 3, connections: 3 });

/** The label over which all these rows are curves; undefined: there is none. */
export function growthLabel(rows: readonly SummaryRow[]): string | undefined {
  const found = growing.find(([x, least]) => {
    if (!rows.every(({ labels }) => typeof labels[x] === 'number')) return false;
    const curves = groupBy(rows, ({ labels }) => rowName(labels, seriesLabels(rows, x), ''));
    return [...curves.values()].some((curve) => new Set(curve.map(({ labels }) => labels[x])).size >= least);
  });
  return found?.[0];
}

/**
 * The names of the labels that tell curves over `x` apart: those in which rows with the same x differ. One that only changes along with x, such as a
 * rate that is made smaller for more sockets, belongs to the point and not to the curve.
 */
export function seriesLabels(rows: readonly SummaryRow[], x: string): string[] {
  return labelNames(rows).filter((name) => {
    if (name === x) return false;
    const seen = new Map<unknown, unknown>();
    return rows.some(({ labels }) => {
      const [at, value] = [labels[x], labels[name]];
      if (at === undefined || value === undefined) return false;
      if (!seen.has(at)) seen.set(at, value);
      return seen.get(at) !== value;
    });
  });
}
