import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { openPage, type WatchedPage } from './browser.js';

/** What the page does with the SDK, as any page would. */
const pageScript = `
import { connect, memoryStorage } from './topicast.min.js';
const sdk = (window.sdk = { got: [], directs: [], events: [], client: undefined });
sdk.start = (url, { topics, stored, tokens, slowToRetry, ...options }) => {
  const client = connect(url, {
    ...options,
    storage: stored ? localStorage : memoryStorage(),
    backoff: slowToRetry ? { baseMs: 600000, maxMs: 600000 } : { baseMs: 20, maxMs: 200 },
    ...(slowToRetry && { random: () => 0.99 }),
    ...(tokens && { getToken: () => window.nextToken() }),
  });
  for (const name of ['state', 'subscribed', 'gap', 'unrecovered', 'refused', 'expiring', 'error']) {
    client.on(name, (event) => sdk.events.push([name, event instanceof Error ? event.message : { ...event }]));
  }
  for (const topic of topics) client.subscribe(topic, ({ data, topic }) => sdk.got.push([topic, data.n]));
  client.onDirect(({ data }) => void sdk.directs.push(data));
  sdk.client = client;
};
`;

interface PageSdk {
  readonly got: [topic: string, n: number][];
  readonly directs: unknown[];
  readonly events: [name: string, event: Readonly<Record<string, unknown>>][];
  readonly client: { publish(topic: string, data: unknown): Promise<unknown> };
  start(url: string, options: StartOptions): void;
}
export type SdkWindow = Window & { readonly sdk: PageSdk };

export interface StartOptions {
  readonly topics: readonly string[];
  readonly codec?: 'json' | 'msgpack';
  readonly user?: string;
  /** Positions are kept in `localStorage`. */
  readonly stored?: boolean;
  /** Tokens come from the `nextToken` that the test exposes. */
  readonly tokens?: boolean;
  /** Only a wake can bring it back before the test ends. */
  readonly slowToRetry?: boolean;
}

/** A page of a shop, so to speak: of another origin than the node, loading the SDK's bundle as it is shipped. */
export class SdkPage {
  readonly page: Page;
  readonly faults: string[];
  /** The files that the page has asked for. */
  readonly loaded: string[] = [];
  readonly #node: string;
  readonly #server: Server;

  private constructor({ faults, page }: WatchedPage, port: number) {
    this.page = page;
    this.faults = faults;
    this.#node = `http://127.0.0.1:${port}`;
    // A real server: Chromium takes pages that a test makes up for pages of the internet, and keeps those from this machine.
    this.#server = createServer((request, response) => {
      const name = request.url?.slice(1) ?? '';
      this.loaded.push(name);
      response.setHeader('Content-Type', name === '' ? 'text/html' : 'text/javascript');
      response.end(fileOf(name));
    });
  }

  /** @param port of the node, which must allow any origin */
  static async open(port: number): Promise<SdkPage> {
    const sdkPage = new SdkPage(await openPage(), port);
    await new Promise<void>((resolve) => sdkPage.#server.listen(0, '127.0.0.1', resolve));
    await sdkPage.load();
    return sdkPage;
  }

  /** Loads the page, for the first time or anew. */
  async load(): Promise<void> {
    await this.page.goto(`http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`);
    await this.page.waitForFunction(() => 'sdk' in window);
  }

  async start(options: StartOptions): Promise<void> {
    await this.page.evaluate(([url, given]) => (window as unknown as SdkWindow).sdk.start(url, given), [
      this.#node,
      options,
    ] as const);
    await this.until(
      'subscribed',
      ({ events }, count) => {
        return events.filter(([name]) => name === 'subscribed').length >= count;
      },
      options.topics.length,
    );
  }

  publish(topic: string, data: unknown): Promise<unknown> {
    return this.page.evaluate(
      ([to, value]) => (window as unknown as SdkWindow).sdk.client.publish(to, value),
      [topic, data] as const,
    );
  }

  /** Waits until something holds in the page; says what the page knew when it never did. */
  async until<T>(what: string, holds: (sdk: PageSdk, arg: T) => boolean, arg: T): Promise<void> {
    const source = `(arg) => (${holds.toString()})(window.sdk, arg)`;
    try {
      await this.page.waitForFunction(`(${source})(${JSON.stringify(arg)})`, undefined, { timeout: 30_000 });
    } catch (cause) {
      const events = (await this.events()).slice(-12);
      throw new Error(
        `did not happen: ${what}; events: ${JSON.stringify(events)}; faults: ${this.faults.slice(-3).join()}`,
        { cause },
      );
    }
  }

  /** Waits until as many messages have come. */
  received(count: number): Promise<void> {
    return this.until(`${count} messages`, ({ got }, least) => got.length >= least, count);
  }

  /** Waits until as many more have come than now. */
  async receivedMore(count: number): Promise<void> {
    const now = await this.page.evaluate(() => (window as unknown as SdkWindow).sdk.got.length);
    await this.received(now + count);
  }

  opened(times: number): Promise<void> {
    return this.until(
      `open for the ${times}th time`,
      ({ events }, least) =>
        events.filter(([name, { state }]) => name === 'state' && state === 'open').length >= least,
      times,
    );
  }

  events(): Promise<PageSdk['events']> {
    return this.page.evaluate(() => (window as unknown as SdkWindow).sdk.events);
  }

  got(): Promise<PageSdk['got']> {
    return this.page.evaluate(() => (window as unknown as SdkWindow).sdk.got);
  }

  directs(): Promise<unknown[]> {
    return this.page.evaluate(() => (window as unknown as SdkWindow).sdk.directs);
  }

  /** By topic, in order. */
  async numbers(topic: string): Promise<number[]> {
    return (await this.got()).filter(([of]) => of === topic).map(([, n]) => n);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    expect(this.faults.filter((fault) => !isOfTheLine(fault))).toEqual([]);
    await this.page.context().close();
  }
}

/** Browsers write every connection that fails into the console of the page. */
function isOfTheLine(fault: string): boolean {
  return /WebSocket connection to|Failed to load resource|net::ERR_/.test(fault);
}

function fileOf(name: string): string {
  if (name === '') return '<!doctype html><title>A page</title><script type="module" src="page.js"></script>';
  if (name === 'page.js') return pageScript;
  if (!/^topicast[\w.-]*\.js$/.test(name)) return '';
  return readFileSync(new URL(`../../dist/client/${name}`, import.meta.url), 'utf8');
}
