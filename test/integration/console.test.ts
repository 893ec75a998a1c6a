import { beforeAll, describe, expect, it } from 'vitest';
import { connect } from '../support/client.js';
import { startNode, type NodeProcess } from '../support/node-process.js';
import { eventually } from '../support/signal.js';
import { apiKey, authEnv, signToken } from '../support/tokens.js';

let node: NodeProcess;
beforeAll(async () => {
  node = await startNode({ ...authEnv, TOPICAST_LOG_LEVEL: 'error' });
});

const admin = { headers: { authorization: `Bearer ${apiKey}` } };

describe('the files of the console', () => {
  it('are served without a token, under a strict policy, each with its type', async () => {
    const page = await fetch(`${node.url}/`);
    expect(page.status).toBe(200);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    const policy = page.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'");
    expect(policy).toContain("base-uri 'none'; frame-ancestors 'none'; form-action 'none'");
    expect(page.headers.get('x-content-type-options')).toBe('nosniff');
    expect(page.headers.get('referrer-policy')).toBe('no-referrer');
    const html = await page.text();
    const linked = [...html.matchAll(/(?:src|href)="(console\/[^"]+)"/g)].map((match) => match[1]);
    expect(linked.length).toBeGreaterThan(2);
    const pending = [...new Set(linked)];
    const types: Record<string, string> = {};
    for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
      if (name in types) continue;
      const file = await fetch(`${node.url}/${name}`);
      expect([name, file.status]).toEqual([name, 200]);
      types[name] = file.headers.get('content-type') ?? '';
      const text = await file.text();
      if (!name.endsWith('.js')) continue;
      pending.push(
        ...[...text.matchAll(/from ?['"]\.\/([^'"]+)['"]/g)].map((match) => `console/${match[1]}`),
      );
    }
    expect(types['console/main.js']).toBe('text/javascript; charset=utf-8');
    expect(types['console/topicast.min.js']).toBe('text/javascript; charset=utf-8');
    expect(types['console/console.css']).toBe('text/css; charset=utf-8');
    expect(types['console/icon.svg']).toBe('image/svg+xml');
  });

  it('come anew only when they have changed', async () => {
    const first = await fetch(`${node.url}/console/main.js`);
    const etag = first.headers.get('etag') ?? '';
    expect(first.headers.get('cache-control')).toBe('no-cache');
    const headers = { 'if-none-match': `"other", W/${etag}` };
    const again = await fetch(`${node.url}/console/main.js`, { headers });
    expect([again.status, await again.text()]).toEqual([304, '']);
    const other = await fetch(`${node.url}/console/main.js`, { headers: { 'if-none-match': '"other"' } });
    expect(other.status).toBe(200);
    const head = await fetch(`${node.url}/console/main.js`, { method: 'HEAD' });
    expect([head.status, head.headers.get('content-length')]).toEqual([
      200,
      String((await first.arrayBuffer()).byteLength),
    ]);
  });

  it.each([
    '/console/',
    '/console/index.html',
    '/console/%2e%2e/main.js',
    '/console/..%2fmain.js',
    '/main.js',
  ])('are these and no others: %s', async (path) => {
    expect((await fetch(node.url + path)).status).toBe(404);
  });

  it('are not there when the console is off', async () => {
    const off = await startNode({ TOPICAST_CONSOLE: 'false', TOPICAST_LOG_LEVEL: 'error' });
    expect((await fetch(`${off.url}/`)).status).toBe(404);
    expect((await fetch(`${off.url}/console/main.js`)).status).toBe(404);
    expect((await fetch(`${off.url}/v1/stats`)).status).toBe(200);
    await off.stop();
  });
});

interface Stats {
  readonly users: number;
  readonly connections: number;
  readonly nodes: readonly {
    readonly id: string;
    readonly ready: boolean;
    readonly counters: Readonly<Record<string, number>>;
    readonly closed: Readonly<Record<string, number>>;
  }[];
  readonly topics: readonly {
    readonly filters: readonly string[];
    readonly messages: number;
    readonly messagesPerSec: number;
    readonly subscribers: number;
  }[];
}

describe('GET /v1/stats', () => {
  const stats = async (): Promise<Stats> =>
    (await (await fetch(`${node.url}/v1/stats`, admin)).json()) as Stats;

  it('needs an admin grant', async () => {
    expect((await fetch(`${node.url}/v1/stats`)).status).toBe(401);
    const token = await signToken({ sub: 'reader', can: { sub: ['>'] } });
    const headers = { authorization: `Bearer ${token}` };
    expect((await fetch(`${node.url}/v1/stats`, { headers })).status).toBe(403);
  });

  it('counts messages, deliveries and closes, and names the hottest topics', async () => {
    const before = (await stats()).nodes[0]!;
    const topics = ['item.hot', 'item.cool', 'item.none'];
    const readers = await Promise.all([1, 2].map(() => connect({ port: node.port, topics, token: apiKey })));
    for (const reader of readers) await reader.frame('subscribed');
    const messages = ['item.hot', 'item.hot', 'item.hot', 'item.cool'].map((topic) => ({ topic, data: 1 }));
    await fetch(`${node.url}/v1/publish`, { ...admin, method: 'POST', body: JSON.stringify({ messages }) });
    for (const reader of readers) await reader.until('all messages', () => reader.messages.length === 4);

    const now = await stats();
    const [own] = now.nodes;
    expect([own?.id, own?.ready, now.nodes.length, now.connections]).toEqual([node.nodeId, true, 1, 2]);
    expect(now.users).toBe(1);
    const grown = (name: string): number => own!.counters[name]! - before.counters[name]!;
    expect([grown('publishedDurable'), grown('fannedOut'), grown('deliveries')]).toEqual([4, 4, 8]);
    expect(now.topics.map(({ filters, messages, subscribers }) => [filters, messages, subscribers])).toEqual([
      [['item.hot'], 3, 2],
      [['item.cool'], 1, 2],
    ]);
    for (const reader of readers) reader.socket.close(1000);
    await eventually('the closes are counted', async () => {
      return ((await stats()).nodes[0]?.closed['1000'] ?? 0) - (before.closed['1000'] ?? 0) === 2;
    });
  });
});
