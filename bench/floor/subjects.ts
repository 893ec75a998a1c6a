import { fileURLToPath } from 'node:url';
import { encodeJsonClient, encodeJsonServer, jsonCodec } from '../../protocol/codec-json.js';
import type { JsonPayload } from '../../protocol/payload.js';
import type { Wrap } from './publisher.js';

/** One server that is measured: how it is started, and how its clients subscribe and publish. */
export interface Subject {
  readonly name: 'bare' | 'node-live' | 'node-durable';
  readonly entry: string;
  readonly variables: Record<string, string>;
  readonly subscribeTarget: string;
  readonly publishTarget: string;
  readonly protocol?: string;
  readonly readyOn: 'upgrade' | 'subscribed';
  readonly wrap: Wrap;
}

const built = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const durableTopic = 'item.floor';
const liveTopic = 'floor.live';

/** Out of the box but for the frame rate of the one publisher, and the port. */
const nodeVariables = {
  TOPICAST_HOST: '127.0.0.1',
  TOPICAST_PORT: '0',
  TOPICAST_LOG_LEVEL: 'error',
  TOPICAST_LIMIT_FRAMES_PER_SEC: '1000000',
  TOPICAST_LIMIT_FRAMES_BURST: '1000000',
  TOPICAST_DRAIN_SEC: '0',
};

export const subjects: readonly Subject[] = [
  {
    name: 'bare',
    entry: built('bench/floor/bare-uws.js'),
    variables: {},
    subscribeTarget: '/sub',
    publishTarget: '/pub',
    readyOn: 'upgrade',
    // The frame that a node would make of it, so that both write the same bytes to the same sockets.
    wrap: (payload, number) =>
      encodeJsonServer({ type: 'msg', topic: durableTopic, data: json(payload), offset: number + 1 }),
  },
  nodeSubject('node-live', liveTopic),
  nodeSubject('node-durable', durableTopic),
];

function nodeSubject(name: Subject['name'], topic: string): Subject {
  return {
    name,
    entry: built('node/main.js'),
    variables: nodeVariables,
    subscribeTarget: `/v1/connect?topics=${topic}`,
    publishTarget: '/v1/connect',
    protocol: jsonCodec.subprotocol,
    readyOn: 'subscribed',
    wrap: (payload, number) => encodeJsonClient({ type: 'publish', req: number, topic, data: json(payload) }),
  };
}

function json(text: string): JsonPayload {
  return { format: 'json', text };
}
