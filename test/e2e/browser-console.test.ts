import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { keepScreenshot, openPage } from '../support/browser.js';
import { freePort, startNode, type NodeProcess } from '../support/node-process.js';
import { apiKey, authEnv, signToken } from '../support/tokens.js';

let open: NodeProcess;
let guarded: NodeProcess;
beforeAll(async () => {
  open = await startNode({ TOPICAST_LOG_LEVEL: 'error' });
  guarded = await startNode({ TOPICAST_LOG_LEVEL: 'error', ...authEnv });
});

const sizes = { desktop: { width: 1280, height: 860 }, phone: { width: 390, height: 844 } } as const;
/** The least that each layout is made for. */
const narrow = { desktop: { width: 920, height: 700 }, phone: { width: 360, height: 640 } } as const;
const looks = [
  ['desktop', 'light'],
  ['desktop', 'dark'],
  ['phone', 'light'],
  ['phone', 'dark'],
] as const;

async function connected(page: Page): Promise<void> {
  await page.locator('#state[data-state="open"]').waitFor();
}

async function subscribe(page: Page, filter: string): Promise<void> {
  await page.getByLabel('Topic or pattern').fill(filter);
  await page.getByRole('button', { name: 'Subscribe', exact: true }).click();
  await page.locator(`.chip[data-filter="${filter}"]`).waitFor();
}

async function publish(page: Page, topic: string, data: unknown): Promise<void> {
  await page.locator('#publish-topic').fill(topic);
  await page.locator('#publish-data').fill(JSON.stringify(data));
  await page.getByRole('button', { name: 'Publish', exact: true }).click();
}

async function publishOverHttp(topic: string, from: number, count: number): Promise<void> {
  const messages = Array.from({ length: count }, (_, i) => ({ topic, data: { n: from + i } }));
  const response = await fetch(`${open.url}/v1/publish`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ messages }),
  });
  expect(response.status).toBe(200);
}

async function expectFits(page: Page): Promise<void> {
  const [content, window] = await page.evaluate(() => {
    const { clientWidth, scrollWidth } = document.documentElement;
    return [scrollWidth, clientWidth] as const;
  });
  expect(content).toBeLessThanOrEqual(window);
}

/** On a phone nobody thinks of scrolling a table sideways. */
async function expectNothingSideways(page: Page): Promise<void> {
  const wide = await page.evaluate(() =>
    Array.from(document.querySelectorAll('.scroll'), (box) => box.scrollWidth - box.clientWidth),
  );
  expect(wide).toEqual([0, 0]);
}

const entry = (page: Page, text: string) => page.locator('.entry', { hasText: text }).first();

describe.each(looks)('the console on a %s, %s', (size, colorScheme) => {
  const space = `item.${size}-${colorScheme}`;
  const options = { viewport: sizes[size], colorScheme, hasTouch: size === 'phone' };
  const picture = (page: Page, name: string) =>
    keepScreenshot(page, `console-${name}-${size}-${colorScheme}`);

  it('subscribes, publishes, pushes, and shows what comes', async () => {
    const { faults, page } = await openPage(options);
    await page.goto(open.url);
    await connected(page);
    await page.getByText('Nothing yet.').waitFor();
    await picture(page, 'empty');
    await subscribe(page, `${space}.*`);
    await subscribe(page, 'price.usd');
    await publish(page, `${space}.1042`, { price: 5 });
    const stored = entry(page, `${space}.1042`);
    await stored.waitFor();
    expect(await page.getByText('Nothing yet.').isVisible()).toBe(false);
    expect(await stored.innerText()).toMatch(/via item\.\S+\.\*\s+offset \d+\s+[\d.]+ ms\s+\{"price":5\}/);
    expect(await page.locator('#publish-result').innerText()).toMatch(/^Stored at offset \d+$/);

    await publish(page, 'price.usd', { bid: 1.0842, ask: 1.0844, note: 'a long text '.repeat(20) });
    const live = entry(page, 'price.usd');
    await live.waitFor();
    expect(await live.innerText()).not.toContain('offset');
    await expect.poll(() => page.locator('#publish-result').innerText()).toBe('Sent: a live topic');

    await page.locator('#push-user').fill('anonymous');
    await page.getByRole('button', { name: 'Push', exact: true }).click();
    await entry(page, '{"hello":1}').waitFor();
    expect(await page.locator('#push-result').innerText()).toMatch(/^Sent to \d+ sessions?$/);
    await page.locator('#push-user').fill('nobody-here');
    await page.getByRole('button', { name: 'Push', exact: true }).click();
    await expect.poll(() => page.locator('#push-result').innerText()).toMatch(/^Queued/);

    await publish(page, 'not..a.topic', 1);
    await expect.poll(() => page.locator('#publish-result').getAttribute('class')).toContain('bad');
    await expectFits(page);
    await page.setViewportSize(narrow[size]);
    await expectFits(page);
    await page.setViewportSize(sizes[size]);
    await page.evaluate(() => scrollTo(0, 0));
    await picture(page, 'live');
    await page.locator('#messages').scrollIntoViewIfNeeded();
    await picture(page, 'live-messages');
    expect(faults).toEqual([]);
    await page.context().close();
  });

  it('shows the node, and counters that rise', async () => {
    const { faults, page } = await openPage(options);
    await page.goto(open.url);
    await connected(page);
    await subscribe(page, `${space}.>`);
    await page.getByRole('link', { name: 'Cluster' }).click();
    await page.locator('#nodes', { hasText: open.nodeId }).waitFor();
    expect(await page.locator('#nodes').innerText()).toContain('ready');
    const tile = (id: string) => page.locator(`[data-tile="${id}"] strong`);
    expect(Number(await tile('connections').innerText())).toBeGreaterThanOrEqual(1);
    const published = async () => Number(await tile('in').innerText());
    let n = 0;
    await expect
      .poll(
        async () => {
          await publishOverHttp(`${space}.7`, n, 20);
          n += 20;
          return (await published()) > 0 && (await page.locator('.sparkline .line').count()) === 4;
        },
        { timeout: 20_000, interval: 200 },
      )
      .toBe(true);
    await page.locator('#topics', { hasText: `${space}.>` }).waitFor();
    await expectFits(page);
    await page.setViewportSize(narrow[size]);
    await expectFits(page);
    if (size === 'phone') await expectNothingSideways(page);
    await page.setViewportSize(sizes[size]);
    await picture(page, 'cluster');
    await page.locator('#closes').scrollIntoViewIfNeeded();
    await picture(page, 'cluster-end');
    expect(faults).toEqual([]);
    await page.context().close();
  });
});

describe('the console', () => {
  it('asks for a token, keeps it in the tab alone, and takes another one', async () => {
    const { page } = await openPage({ viewport: sizes.desktop });
    await page.goto(guarded.url);
    await page.getByText('Token needed').waitFor();
    await keepScreenshot(page, 'console-token');
    const reader = await signToken({ sub: 'reader', can: { sub: ['item.>'] } });
    await page.getByLabel('Token or API key').fill(reader);
    await page.keyboard.press('Enter');
    await connected(page);
    await subscribe(page, 'item.>');
    await page.getByRole('link', { name: 'Cluster' }).click();
    await page.getByText('has no admin grant').waitFor();
    await page.locator('#access-summary').click();
    await page.getByLabel('Token or API key').fill(apiKey);
    await page.getByRole('button', { name: 'Connect', exact: true }).click();
    await page.locator('#nodes', { hasText: guarded.nodeId }).waitFor();

    const kept = await page.evaluate(() => [
      Object.entries(sessionStorage).join(),
      Object.entries(localStorage).join() + document.cookie + location.href,
    ]);
    expect(kept[0]).toContain(apiKey);
    expect(kept[1]).not.toContain(apiKey);
    await page.reload();
    await connected(page);
    await page.getByRole('link', { name: 'Live' }).click();
    await page.locator('.chip', { hasText: 'item.>' }).waitFor();
    await page.context().close();
  });

  it('shows what messages say as text, and runs no script that the node did not serve', async () => {
    const { faults, page } = await openPage();
    await page.goto(open.url);
    await connected(page);
    await subscribe(page, 'price.evil');
    await publish(page, 'price.evil', '<img src=x onerror="document.title=1"><b id="injected">b</b>');
    await entry(page, 'onerror').waitFor();
    expect(await page.locator('#injected').count()).toBe(0);
    expect(faults).toEqual([]);
    await page.evaluate(() => {
      const script = document.createElement('script');
      script.textContent = 'document.title = "breached"';
      document.head.append(script);
    });
    await expect.poll(() => faults.join()).toContain('content security policy: script-src');
    expect(await page.title()).toBe('Topicast console');
    await page.context().close();
  });

  it('can be used with the keyboard alone', async () => {
    const { page } = await openPage({ viewport: sizes.desktop });
    await page.goto(open.url);
    await connected(page);
    const tabTo = async (id: string): Promise<void> => {
      for (let i = 0; i < 30; i++) {
        if ((await page.evaluate(() => document.activeElement?.id)) === id) return;
        await page.keyboard.press('Tab');
      }
      throw new Error(`no way to #${id} with the Tab key`);
    };
    await tabTo('subscribe-topic');
    await page.keyboard.press('Control+A');
    await page.keyboard.type('price.keys');
    await page.keyboard.press('Enter');
    await tabTo('publish-topic');
    await page.keyboard.press('Control+A');
    await page.keyboard.type('price.keys');
    await tabTo('publish-data');
    await page.keyboard.press('Control+A');
    await page.keyboard.type('"by hand"');
    await page.keyboard.press('Control+Enter');
    await entry(page, '"by hand"').waitFor();
    await page.getByLabel('Unsubscribe from price.keys').focus();
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('.chip').count()).toBe(0);
    await page.context().close();
  });

  it('tells of a lost connection and of the next one', async () => {
    const { page } = await openPage({ viewport: sizes.desktop });
    const env = { TOPICAST_LOG_LEVEL: 'error', TOPICAST_PORT: String(await freePort()) };
    const node = await startNode(env);
    await page.goto(node.url);
    await connected(page);
    await node.kill();
    await page.locator('.entry.bad', { hasText: 'Connection lost' }).waitFor();
    await page.locator('#state[data-state="waiting"]').waitFor();
    await keepScreenshot(page, 'console-lost');
    await startNode(env);
    await page.locator('.entry', { hasText: 'Connected again' }).waitFor();
    await connected(page);
    await page.context().close();
  });
});
