import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { HttpLine } from '../../bench/publish/http-line.js';
import { faultsOfOffsets, loadOverHttp } from '../../bench/publish/http-load.js';

/** A server that answers each post with what `answer` makes of its path and body, in two pieces. */
async function withServer<T>(
  answer: (path: string, body: string) => { status: number; body: string },
  use: (url: string) => Promise<T>,
): Promise<T> {
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    request.on('end', () => {
      const { body, status } = answer(request.url ?? '', text);
      response.writeHead(status, { 'Content-Length': Buffer.byteLength(body) });
      response.write(body.slice(0, 3), () => setImmediate(() => response.end(body.slice(3))));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    return await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

describe('the publishers of the bench', () => {
  it('read answers whole, one after the other', async () => {
    await withServer(
      (path, body) => ({ status: body === '"x"' ? 200 : 503, body: `{"é":"${path}"}` }),
      async (url) => {
        const line = await HttpLine.open(url);
        expect(await line.post('/a', '"x"')).toEqual({ status: 200, body: '{"é":"/a"}' });
        const second = line.post('/b', '"y"');
        await expect(line.post('/c', '1')).rejects.toThrow('under way');
        expect(await second).toEqual({ status: 503, body: '{"é":"/b"}' });
        line.close();
      },
    );
  });

  it('fail when the connection ends before the answer', async () => {
    const line = await withServer(
      () => ({ status: 200, body: '{}  ' }),
      (url) => HttpLine.open(url),
    );
    await expect(line.post('/a', '1')).rejects.toThrow('closed');
  });

  it('find offsets that are missing or come twice', () => {
    expect(faultsOfOffsets([7, 5, 6])).toEqual([]);
    expect(faultsOfOffsets([5, 9, 6])).toEqual([expect.stringContaining('2 offsets between')]);
    expect(faultsOfOffsets([5, 6, 6])).toEqual([expect.stringContaining('1 offsets were answered twice')]);
  });

  it('count what a node stores, single and in batches, and tell what it refuses', async () => {
    let offset = 0;
    const load = { connections: 3, topics: ['item.a', 'item.b'], bytes: 20, seconds: 0.05 };
    const store = (_path: string, body: string) => {
      const count = body.startsWith('{"messages"') ? body.split('"data"').length - 1 : 1;
      const results = Array.from({ length: count }, () => `{"topic":"item.a","offset":${++offset}}`);
      return { status: 200, body: `{"results":[${results.join(',')}]}` };
    };
    for (const batch of [1, 10]) {
      const before = offset;
      const result = await withServer(store, (url) => loadOverHttp({ ...load, url, batch }));
      expect(result).toMatchObject({ published: offset - before, faults: [] });
      expect(result.published).toBeGreaterThan(0);
    }
    const refused = await withServer(
      () => ({ status: 503, body: '{"error":"unavailable"}' }),
      (url) => loadOverHttp({ ...load, url, batch: 1 }),
    );
    expect(refused).toMatchObject({ published: 0, faults: [expect.stringContaining('503')] });
  });
});
