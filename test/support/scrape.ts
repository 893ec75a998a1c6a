import { apiKey } from './tokens.js';
import { eventually } from './signal.js';

/** The value of one metric of a node, without the prefix; labels as they are written: `closed_total{code="4000"}`. Absent is 0. */
export async function scrape(port: number, ...names: readonly string[]): Promise<number[]> {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`, {
    headers: { authorization: `Bearer ${apiKey}` },
  });
  if (!response.ok) throw new Error(`/metrics answered ${response.status}: ${await response.text()}`);
  const lines = (await response.text()).split('\n');
  return names.map((name) => {
    const line = lines.find((text) => text.startsWith(`topicast_${name} `));
    return line === undefined ? 0 : Number(line.slice(line.lastIndexOf(' ') + 1));
  });
}

/** Waits until the node hosts no connection and no channel any more. */
export async function untilEmpty(port: number): Promise<void> {
  let seen: number[] = [];
  try {
    await eventually('the node is empty', async () => {
      seen = await scrape(port, 'connections', 'channels');
      return seen.every((count) => count === 0);
    });
  } catch (cause) {
    throw new Error(`connections, channels: ${seen.join(', ')}`, { cause });
  }
}
