import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { keepScreenshot, openPage, type WatchedPage } from '../support/browser.js';
import { runCli } from '../support/child.js';
import { freePort, startNode, type NodeProcess } from '../support/node-process.js';

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
const section = /\n## In a page of your own\n(.*?)\n## /s.exec(readme)?.[1] ?? '';
/** The file that the README gives to copy. */
const html = /```html\n(.*?)```/s.exec(section)?.[1] ?? '';
/** The origin that it has the node serve. */
const [, allowed = ''] = /TOPICAST_ALLOWED_ORIGINS=(\S+) npm start/.exec(section) ?? [];
/** The command that it gives to publish with. */
const [, topic = '', json = ''] = /`npx topicast pub (\S+) '(.*?)'`/.exec(section) ?? [];
const line = `${topic} ${json}\n`;

const ends: (() => unknown)[] = [];
let port: number;
beforeEach(async () => {
  port = await freePort();
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** What `npm start` starts, but for the port. */
async function start(env: Readonly<Record<string, string>> = {}): Promise<NodeProcess> {
  const node = await startNode({ TOPICAST_PORT: String(port), ...env });
  ends.push(() => node.kill());
  return node;
}

async function open(): Promise<WatchedPage> {
  const watched = await openPage();
  ends.push(() => watched.page.context().close());
  return watched;
}

const ownHtml = () => html.replaceAll('127.0.0.1:8080', `127.0.0.1:${port}`);

/** Serves the file to the browser, as `python3 -m http.server` would. @returns where */
async function serve(): Promise<string> {
  const server: Server = createServer((_request, response) => {
    response.setHeader('Content-Type', 'text/html');
    response.end(ownHtml());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ends.push(() => new Promise((resolve) => server.close(resolve)));
  return `http://localhost:${(server.address() as AddressInfo).port}/`;
}

/** Puts the file on the disk. @returns its address */
function save(): string {
  const folder = mkdtempSync(join(tmpdir(), 'topicast-page-'));
  ends.push(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'index.html'), ownHtml());
  return pathToFileURL(join(folder, 'index.html')).href;
}

async function publish(node: NodeProcess): Promise<void> {
  const child = runCli(['pub', topic, json], { TOPICAST_URL: node.url });
  expect(await child.exited, child.stderr).toBe(0);
}

async function subscribed(node: NodeProcess): Promise<void> {
  const ask = async () => {
    const answer = await fetch(`${node.url}/v1/topics/item.*`);
    return ((await answer.json()) as { subscribers: number }).subscribers;
  };
  await expect.poll(ask, { timeout: 30_000 }).toBe(1);
}

it('the page of the README shows what its command publishes, also after the node was away', async () => {
  const address = await serve();
  const env = { TOPICAST_ALLOWED_ORIGINS: allowed.replace('localhost:8000', new URL(address).host) };
  expect(env.TOPICAST_ALLOWED_ORIGINS).toBe(new URL(address).origin);
  const node = await start(env);
  const { faults, page } = await open();
  await page.goto(address);
  await subscribed(node);
  await publish(node);
  await expect.poll(() => page.textContent('#news')).toBe(line);
  expect(faults).toEqual([]);

  await node.stop();
  const again = await start(env);
  await subscribed(again);
  await publish(again);
  await expect.poll(() => page.textContent('#news')).toBe(line + line);
  await keepScreenshot(page, 'readme-page');
});

it('a page that is opened from the disk is turned away with a word in the log, and let in by the setting', async () => {
  const node = await start();
  const { page } = await open();
  await page.goto(save());
  await node.waitFor('stderr', /"origin":"null".*TOPICAST_ALLOWED_ORIGINS/);
  await node.stop();

  const [, setting = ''] = /`TOPICAST_ALLOWED_ORIGINS='(.)'`/.exec(section) ?? [];
  const again = await start({ TOPICAST_ALLOWED_ORIGINS: setting });
  await page.reload();
  await subscribed(again);
  await publish(again);
  await expect.poll(() => page.textContent('#news')).toBe(line);
});
