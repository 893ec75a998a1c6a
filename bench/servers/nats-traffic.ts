import type { NatsServers } from './nats-kit.js';

/** Messages that clients have sent to NATS, and got from it, since they connected. What servers of a cluster say to each other is not in it. */
export interface NatsTraffic {
  readonly in: number;
  readonly out: number;
}

/** Of all client connections of all servers: `/connz`, because `/varz` of a cluster counts Raft as well. */
export async function natsTraffic({ nodes }: NatsServers): Promise<NatsTraffic> {
  let [into, out] = [0, 0];
  for (const { monitor } of nodes) {
    const answer = (await (await fetch(`${monitor}/connz?limit=1024`)).json()) as {
      readonly connections: readonly { readonly in_msgs: number; readonly out_msgs: number }[];
    };
    for (const { in_msgs, out_msgs } of answer.connections) {
      into += in_msgs;
      out += out_msgs;
    }
  }
  return { in: into, out };
}
