import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { afterAll } from 'vitest';
import { chromiumBrowser } from './servers/binaries.js';

/** Where tests leave what people look at; not under version control. */
const outputFolder = fileURLToPath(new URL('../../test-output', import.meta.url));
/** How long anything on a page may take. */
const patienceMs = 15_000;
let browser: Promise<Browser> | undefined;
afterAll(async () => (await browser)?.close());

/** The one browser of a test file: headless, with a profile of its own that is thrown away, and quiet on the network. */
function launch(): Promise<Browser> {
  browser ??= chromium.launch({
    executablePath: chromiumBrowser().path,
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
  return browser;
}

export interface WatchedPage {
  readonly page: Page;
  /** What the page complained of: errors in its console, uncaught ones, breaches of its content security policy. */
  readonly faults: string[];
}

/** A page in a context of its own, so without cookies and storage. */
export async function openPage(options: BrowserContextOptions = {}): Promise<WatchedPage> {
  const context = await (await launch()).newContext(options);
  context.setDefaultTimeout(patienceMs);
  const page = await context.newPage();
  const faults: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') faults.push(message.text());
  });
  page.on('pageerror', (error) => faults.push(String(error)));
  await page.exposeFunction('topicastTestFault', (fault: string) => faults.push(fault));
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', ({ blockedURI, violatedDirective }) => {
      (globalThis as unknown as { topicastTestFault(fault: string): void }).topicastTestFault(
        `content security policy: ${violatedDirective} ${blockedURI}`,
      );
    });
  });
  return { page, faults };
}

/** Keeps a picture of what is to be seen, `test-output/NAME.png`. */
export async function keepScreenshot(page: Page, name: string): Promise<void> {
  mkdirSync(outputFolder, { recursive: true });
  await page.screenshot({ path: join(outputFolder, `${name}.png`) });
}
