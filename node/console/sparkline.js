import { svg } from './dom.js';

const width = 120;
const height = 32;
/** So that a line at the edge is drawn in its full width. */
const margin = 2;

/** A small line of the values, the newest at the right; the scale begins at zero. @param {number[]} values @param {number} size of a full line */
export function sparkline(values, size) {
  const line = svg('svg', {
    class: 'sparkline',
    viewBox: `0 0 ${width} ${height}`,
    preserveAspectRatio: 'none',
    'aria-hidden': 'true',
  });
  line.append(
    svg('line', {
      class: 'base',
      x1: '0',
      x2: String(width),
      y1: String(height - 0.5),
      y2: String(height - 0.5),
    }),
  );
  if (values.length < 2) return line;
  const max = Math.max(...values, 1);
  const step = width / (size - 1);
  const points = values.map((value, i) => {
    const x = width - (values.length - 1 - i) * step;
    const y = height - margin - (value / max) * (height - 2 * margin);
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  });
  const startX = (width - (values.length - 1) * step).toFixed(1);
  line.append(
    svg('polygon', { class: 'area', points: `${startX},${height} ${points.join(' ')} ${width},${height}` }),
    svg('polyline', { class: 'line', points: points.join(' ') }),
  );
  return line;
}
