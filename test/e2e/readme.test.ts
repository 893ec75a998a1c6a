import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { keepScreenshot, openPage } from '../support/browser.js';
import { runCli } from '../support/child.js';
import { freePort, startNode } from '../support/node-process.js';

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
const section = /\n## In a page of your own\n(.*?)\n## /s.exec(readme)?.[1] ?? '';

/** What the README gives to copy, in the language of its fence. */
function block(language: string): string {
  const text = new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 's').exec(section)?.[1];
  if (text === undefined) throw new Error(`the README has no ${language} in that section`);
  return text;
}

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function serve(html: string): Promise<number> {
  const server: Server = createServer((_request, response) => {
    response.setHeader('Content-Type', 'text/html');
    response.end(html);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ends.push(() => new Promise((resolve) => server.close(resolve)));
  return (server.address() as AddressInfo).port;
}

it('the page that the README gives shows what its command publishes, also after the node was away', async () => {
  const port = await freePort();
  const pagePort = await serve(block('html').replaceAll('localhost:8080', `localhost:${port}`));
  const [, setting = ''] = /TOPICAST_ALLOWED_ORIGINS=(\S+) npm start/.exec(block('sh')) ?? [];
  const [, topic = '', json = ''] = /`npx topicast pub (\S+) '(.*?)'`/.exec(section) ?? [];
  const start = async () => {
    const node = await startNode({
      TOPICAST_PORT: String(port),
      TOPICAST_ALLOWED_ORIGINS: setting.replace('8000', String(pagePort)),
    });
    ends.push(() => node.kill());
    return node;
  };
  const publish = async (url: string) => {
    const child = runCli(['pub', topic, json], { TOPICAST_URL: url });
    expect(await child.exited, child.stderr).toBe(0);
  };
  const subscribed = (url: string) => async () => {
    const answer = await fetch(`${url}/v1/topics/item.*`);
    return ((await answer.json()) as { subscribers: number }).subscribers;
  };

  const node = await start();
  const { faults, page } = await openPage();
  ends.push(() => page.context().close());
  await page.goto(`http://localhost:${pagePort}/`);
  const line = `${topic} ${json}\n`;
  await expect.poll(subscribed(node.url), { timeout: 20_000 }).toBe(1);
  await publish(node.url);
  await expect.poll(() => page.textContent('#news')).toBe(line);
  expect(faults).toEqual([]);

  await node.stop();
  const again = await start();
  await expect.poll(subscribed(again.url), { timeout: 30_000 }).toBe(1);
  await publish(again.url);
  await expect.poll(() => page.textContent('#news')).toBe(line + line);
  await keepScreenshot(page, 'readme-page');
});
