import type { Msg } from 'nats';
import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { NatsLink } from '../../broker/nats-link.js';
import type { SubscriptionOwner } from '../../broker/nats-subscription.js';
import { startNatsProxy, type NatsProxy } from '../support/proxy.js';
import { natsServers } from '../support/servers/binaries.js';
import { startNats, type NatsServers } from '../support/servers/nats-kit.js';
import { Signal } from '../support/signal.js';

const config = readFileSync(new URL('../../docs/nats-permissions.conf', import.meta.url), 'utf8');

/** Notes what comes, and throws at the text `throw`. */
class Owner implements SubscriptionOwner {
  readonly signal = new Signal();
  readonly got: string[] = [];
  readonly faults: string[] = [];

  onMessage(key: string, message: Msg): void {
    const text = message.string();
    if (text === 'throw') throw new Error('cannot take it');
    this.got.push(`${key}=${text}`);
    this.signal.notify();
  }

  onFault(error: unknown): void {
    this.faults.push(String(error));
    this.signal.notify();
  }

  until(...got: string[]): Promise<void> {
    return this.signal.until(got.join(), () => this.got.join() === got.join());
  }
}

describe.each(natsServers())('a subscription to a topic, nats-server $version', ({ version }) => {
  let servers: NatsServers;
  let proxy: NatsProxy;
  let link: NatsLink;
  let other: NatsLink;
  let owner: Owner;

  beforeAll(async () => {
    servers = await startNats({ version });
    proxy = await startNatsProxy(servers.urls[0]!);
    link = await NatsLink.open({ servers: [proxy.url], name: 'subscriber' });
    other = await NatsLink.open({ servers: servers.urls, name: 'publisher' });
  });
  afterAll(async () => {
    await Promise.all([link.close(), other.close()]);
    await proxy.close();
    await servers.stop();
  });
  afterEach(() => expect(link.connected).toBe(true));

  const subscribe = async (...topics: string[]) => {
    owner = new Owner();
    const all = topics.map((topic) => link.subscribeTopic(`t.${topic}`, topic, owner));
    await link.nc.flush();
    return all;
  };

  it('gets what is published, with its key, until it ends', async () => {
    const [a, b] = await subscribe('a', 'b');
    other.nc.publish('t.a', '1');
    other.nc.publish('t.b', '2');
    other.nc.publish('t.c', '3');
    await owner.until('a=1', 'b=2');
    a!.unsubscribe();
    await link.nc.flush();
    other.nc.publish('t.a', '4');
    other.nc.publish('t.b', '5');
    await owner.until('a=1', 'b=2', 'b=5');
    b!.unsubscribe();
  });

  it('outlives an owner who throws', async () => {
    const [a] = await subscribe('a');
    other.nc.publish('t.a', 'throw');
    other.nc.publish('t.a', 'after');
    await owner.until('a=after');
    expect(owner.faults).toEqual(['Error: cannot take it']);
    a!.unsubscribe();
  });

  it('is there again when the connection is back, unless it has ended meanwhile', async () => {
    const [a, b] = await subscribe('a', 'b');
    const back = new Promise<void>((resolve) => link.watch((connected) => connected && resolve()));
    const gone = new Promise<void>((resolve) => link.watch((connected) => !connected && resolve()));
    proxy.cut();
    await gone;
    b!.unsubscribe();
    proxy.restore();
    await back;
    await link.nc.flush();
    other.nc.publish('t.b', '1');
    other.nc.publish('t.a', '2');
    await owner.until('a=2');
    a!.unsubscribe();
  });
});

it('tells its owner that the server refuses it', async () => {
  const servers = await startNats({ config });
  const host = servers.urls[0]!.slice('nats://'.length);
  const link = await NatsLink.open({ servers: [`nats://node:change-me-node@${host}`], name: 'node' });
  const owner = new Owner();
  link.subscribeTopic('forbidden.topic', 'topic', owner);
  await owner.signal.until('refused', () => owner.faults.length > 0);
  expect(owner.faults[0]).toMatch(/permissions violation/i);
  await link.close();
  await servers.stop();
});
