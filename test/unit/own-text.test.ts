import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { ownText } from '../../node/own-text.js';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const texts = 500;
const textBytes = 2 ** 16;

/** Of how many long texts as much memory is still held when only this is kept of each. */
function heldOf(keep: (text: string) => string): number {
  collect();
  const before = process.memoryUsage().heapUsed;
  const kept = Array.from({ length: texts }, (_, i) =>
    keep(Buffer.alloc(textBytes, `topic-${i}-`).toString('latin1')),
  );
  collect();
  const held = process.memoryUsage().heapUsed - before;
  expect(kept).toHaveLength(texts);
  return held / textBytes;
}

describe('ownText', () => {
  it('says the same', () => {
    for (const text of ['', 'item.7', 'ä€𝄞', 'x'.repeat(10_000)]) expect(ownText(text)).toBe(text);
  });

  it('holds nothing of the text that it was cut out of', () => {
    const cut = (text: string) => text.slice(100, 130);
    expect(heldOf(cut)).toBeGreaterThan(texts / 2);
    expect(heldOf((text) => ownText(cut(text)))).toBeLessThan(texts / 10);
  });
});
