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
  return {
    nodes,
    async dispose() {
      await Promise.all(nodes.map((node) => node.stop()));
      await Promise.all(links.map((link) => link.close()));
    },
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
