import { readFileSync } from 'node:fs';
import { builtFile } from '../built.js';
import { openPublisher } from '../fleet/publisher.js';
import { subjects, type SubjectName } from '../floor/subjects.js';
import { packageVersion } from './packages.js';
import type { Peer, PeerName } from './peer.js';

/** The servers of `fanout`: the floor, and a node with a live and with a durable topic. */
export const ownPeers: readonly Peer[] = [
  subjectPeer('bare', 'bare', () => packageVersion('uWebSockets.js') ?? ''),
  subjectPeer('topicast-live', 'node-live', topicastVersion),
  subjectPeer('topicast-durable', 'node-durable', topicastVersion),
];

function topicastVersion(): string {
  const manifest = readFileSync(builtFile('../package.json'), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}

function subjectPeer(name: PeerName, subjectName: SubjectName, release: () => string): Peer {
  const subject = subjects.find((one) => one.name === subjectName);
  if (subject === undefined) throw new Error(`no subject ${subjectName}`);
  return {
    name,
    exact: true,
    look: () => ({ release: release() }),
    async start(context, { flags }) {
      const server = await context.startNode({ entry: subject.entry, env: subject.env, flags });
      return {
        url: server.url,
        pids: [server.pid],
        topic: subject.topic,
        subscribe: subject.subscribe,
        openPublisher: (bytes) =>
          openPublisher({ url: server.url, bytes, topics: [subject.topic], ...subject.publish }),
      };
    },
  };
}
