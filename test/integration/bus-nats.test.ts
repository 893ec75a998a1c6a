import { afterAll, beforeAll, describe } from 'vitest';
import { createNatsBus } from '../../broker/bus-nats.js';
import type { TopicBus } from '../../broker/bus.js';
import type { Namespaces } from '../../broker/namespaces.js';
import { NatsLink } from '../../broker/nats-link.js';
import { natsServers } from '../support/servers/binaries.js';
import { topicBusConformance } from '../conformance/topic-bus-suite.js';
import { startNats, startNatsCluster, type NatsServers } from '../support/servers/nats-kit.js';

let prefixes = 0;

/** Buses of one cluster under a prefix of their own: each with its own connection, to its own server where there are several. */
async function makeBuses(servers: NatsServers, namespaces: Namespaces, count: number) {
  const prefix = `t${++prefixes}`;
  const links: NatsLink[] = [];
  const nodes: TopicBus[] = [];
  for (let i = 0; i < count; i++) {
    const link = await NatsLink.open({ servers: [servers.urls[i % servers.urls.length]!], name: `bus-${i}` });
    links.push(link);
    nodes.push(
      createNatsBus({
        link,
        namespaces,
        prefix,
        replicas: 3,
        auditSec: 15,
        onFault: (error) => console.error(error),
      }),
    );
  }
  const [listener] = nodes;
  const [near] = links;
  const far = links.at(-1);
  if (listener !== undefined && near !== undefined && far !== undefined) fence(listener, near, far);
  return {
    nodes,
    async dispose() {
      await Promise.all(nodes.map((node) => node.stop()));
      await Promise.all(links.map((link) => link.close()));
    },
  };
}

/**
 * `open` is confirmed by the listener's own server; the publisher's hears of the interest over their route a moment later, and a live message in
 * between is nobody's. What the suite publishes after `open` has to come, so `open` waits here until a question that was
 * subscribed to after it is answered across the same route.
 */
function fence(listener: TopicBus, near: NatsLink, far: NatsLink): void {
  const open = listener.open.bind(listener);
  let fences = 0;
  listener.open = async (interest) => {
    const head = await open(interest);
    if (near === far || !near.connected) return head;
    const subject = `fence.${near.nc.info?.client_id}.${++fences}`;
    const subscription = near.nc.subscribe(subject, { callback: (_, message) => void message.respond() });
    for (let answered = false; !answered;) {
      answered = await far.nc.request(subject, '', { timeout: 1000 }).then(
        () => true,
        () => false,
      );
    }
    subscription.unsubscribe();
    return head;
  };
}

for (const { version } of natsServers()) {
  describe(`one server ${version}`, () => {
    let servers: NatsServers;
    beforeAll(async () => {
      servers = await startNats({ version });
    });
    afterAll(() => servers.stop());

    topicBusConformance('NATS', { make: (namespaces) => makeBuses(servers, namespaces, 2) });
  });

  describe(`three servers ${version}`, () => {
    let servers: NatsServers;
    beforeAll(async () => {
      servers = await startNatsCluster(3, { version });
    });
    afterAll(() => servers.stop());

    topicBusConformance('NATS cluster', { make: (namespaces) => makeBuses(servers, namespaces, 3) });
  });
}
