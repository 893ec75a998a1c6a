import { describe, expect, it } from 'vitest';
import { runDemo, type DemoOptions } from '../../bench/demo/run.js';
import { sum } from '../../bench/demo/verdict.js';

/** Runs the demo as fast as the node takes it; what it printed is shown when the run is not sound. */
async function run(options: DemoOptions) {
  let printed = '';
  const output = { write: (text: string) => (printed += text) };
  const result = await runDemo({ ...options, speed: 'max', output });
  return { result, printed };
}

describe('the demo against a node of its own', () => {
  it.each([
    ['with the ring it has by default', {}],
    ['with a ring so small that replay reads the store', { ring: 4 }],
  ])('delivers exactly what is owed, %s', { timeout: 180_000 }, async (_name, options) => {
    const { result, printed } = await run(options);
    expect(result.ok, printed).toBe(true);
    expect(result.dropped).toBe(240);
    expect(result.faults, printed).toEqual([]);
    const { durable, live, direct } = result.verdict.counts;
    // One in five feed events is a direct message; most of the rest reach many users.
    expect(sum(durable)).toMatchObject({ received: sum(durable).expected, lost: 0, twice: 0, outOfOrder: 0 });
    expect(sum(durable).expected).toBeGreaterThan(10_000);
    expect(sum(direct)).toMatchObject({ expected: 697, received: 697, lost: 0, twice: 0, outOfOrder: 0 });
    expect(sum(live)).toMatchObject({ lost: 0, twice: 0, outOfOrder: 0, expectedMost: 1_200 * 64 });
    expect(sum(live).expected).toBeGreaterThan(960 * 64 - 1);
    expect(printed).toContain('OK\n');
  });

  it('stops the node when it is interrupted', async () => {
    const interrupted = new AbortController();
    let printed = '';
    const output = {
      write: (text: string) => {
        printed += text;
        if (text.includes('engine=')) interrupted.abort(new Error('interrupted'));
      },
    };
    await expect(runDemo({ output, signal: interrupted.signal })).rejects.toThrow('interrupted');
    const url = /http:\/\/\S+/.exec(printed)?.[0] ?? '';
    await expect(fetch(`${url}/healthz`)).rejects.toThrow('fetch failed');
  });
});
