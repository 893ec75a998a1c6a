import { encodeJsonServer } from '../../protocol/codec-json.js';
import { encodeMsgpackServer } from '../../protocol/codec-msgpack.js';
import type { Encoded } from '../../protocol/codec.js';
import { builtFile } from '../built.js';
import type { FleetOptions } from '../fleet/fleet-plan.js';
import type { OutgoingMessage, PublisherOptions } from '../fleet/publisher.js';

/** One server that fans out: how it is started, and how its clients subscribe and publish. */
export interface Subject {
  readonly name: SubjectName;
  readonly entry: string;
  readonly env: Readonly<Record<string, string>>;
  readonly topic: string;
  readonly subscribe: Pick<FleetOptions, 'path' | 'offerProtocol' | 'readyOn'>;
  readonly publish: Pick<PublisherOptions, 'path' | 'offerProtocol' | 'wrap'>;
}

export const subjectNames = ['bare', 'node-live', 'node-durable'] as const;
export type SubjectName = (typeof subjectNames)[number];

const durableTopic = 'item.floor';

/** What one publisher needs that sends more than a client may. */
export const fastPublisherEnv = {
  TOPICAST_LIMIT_FRAMES_PER_SEC: '1000000',
  TOPICAST_LIMIT_FRAMES_BURST: '1000000',
};

export const subjects: readonly Subject[] = [
  {
    name: 'bare',
    entry: builtFile('bench/floor/bare-uws.js'),
    env: {},
    topic: durableTopic,
    subscribe: { path: '/sub', offerProtocol: false, readyOn: 'upgrade' },
    publish: {
      path: '/pub',
      offerProtocol: false,
      wrap: nodeFrame,
    },
  },
  nodeSubject('node-live', 'floor.live'),
  nodeSubject('node-durable', durableTopic),
];

/** The frame that a node would make of a message, so that a server that fans out what it is given writes the same bytes to the same sockets. */
export function nodeFrame({ data, number, topic }: OutgoingMessage): Encoded {
  const frame = { type: 'msg', topic, data, offset: number + 1 } as const;
  return data.format === 'json' ? encodeJsonServer(frame) : encodeMsgpackServer(frame);
}

/** Out of the box but for the frame rate of the one publisher. */
function nodeSubject(name: SubjectName, topic: string): Subject {
  return {
    name,
    entry: builtFile('node/main.js'),
    env: fastPublisherEnv,
    topic,
    subscribe: {},
    publish: {},
  };
}
