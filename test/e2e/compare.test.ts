import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseResult } from '../../bench/result/result.js';
import { natsServers } from '../../bench/servers/binaries.js';
import { runCli } from '../support/child.js';

const brief = '--sockets 100 --rate 50 --seconds 1 --warm-up 1 --settle 0 --rounds 1'.split(' ');

/** Compares these peers, which must succeed. */
async function compare(peers: string, env: Readonly<Record<string, string>> = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'topicast-compare-'));
  const file = join(folder, 'compare.json');
  const child = runCli(['bench', 'compare', ...brief, '--peers', peers, '--json', file], env);
  expect(await child.exited, child.stderr).toBe(0);
  const result = parseResult(await readFile(file, 'utf8'));
  await rm(folder, { recursive: true });
  return { child, result };
}

describe('comparing with peers', () => {
  it('sends the same messages through each of them, and misses none', async () => {
    natsServers();
    const { child, result } = await compare('bare,topicast-durable,ws,socket.io,nats');
    expect(result, child.stderr).toMatchObject({ faults: [], doubts: [] });
    expect(result.rows.map(({ labels }) => labels['peer'])).toEqual([
      'bare',
      'topicast-durable',
      'ws',
      'socket.io',
      'nats',
    ]);
    for (const { figures, labels, latency } of result.rows) {
      const { peer, release } = labels;
      expect(figures, String(peer)).toMatchObject({ deliveries: 5000, lost: 0, doubled: 0, disorder: 0 });
      expect(figures.ratioToBare, String(peer)).toBeGreaterThan(0);
      expect(figures.rssBytesPerSocket, String(peer)).toBeDefined();
      expect(figures.cpuUsPerHandshake, String(peer)).toBeGreaterThanOrEqual(0);
      expect(figures.p99Ms, String(peer)).toBeGreaterThan(0);
      expect(latency?.at(-1)?.[1], String(peer)).toBeGreaterThan(0);
      expect(release, String(peer)).toMatch(/^\d+\.\d+\.\d+/);
    }
    expect(child.stdout).toContain('memory a socket');
  });

  const isEverywhere = ['/usr/sbin', '/usr/local/bin', '/usr/local/sbin', '/usr/bin', '/bin'].some((folder) =>
    existsSync(join(folder, 'centrifugo')),
  );
  it.skipIf(isEverywhere)('names those that are not installed, and how to get them', async () => {
    const { child, result } = await compare('bare,centrifugo', {
      PATH: '/usr/bin:/bin',
      HOME: '/nonexistent',
    });
    const told = 'centrifugo (get it with: go install github.com/centrifugal/centrifugo/v6@latest)';
    expect(child.stderr).toContain(`skipped: ${told}`);
    expect(result.settings['skipped']).toBe(told);
    expect(result.rows.map(({ labels }) => labels['peer'])).toEqual(['bare']);
  });

  it('refuses a peer that it does not know', async () => {
    const child = runCli(['bench', 'compare', '--peers', 'bare,nothing']);
    expect(await child.exited).toBe(2);
    expect(child.stderr).toContain('socket.io, nats, nchan, centrifugo');
  });
});
