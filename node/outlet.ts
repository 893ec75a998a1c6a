import type { ServerFrame } from '../protocol/frames.js';
import type { ChannelMessage } from './message.js';

/**
 * What became of something sent: on its way; accepted but waiting in memory for a slow reader; or not accepted, because too much
 * waits already. After `dropped` whatever was sent earlier still arrives, in order.
 */
export type SendStatus = 'sent' | 'buffered' | 'dropped';

/** The transport end of a session: a WebSocket or an event stream. All calls are synchronous and safe after the close. */
export interface Outlet {
  /** Sends one frame to this session alone. */
  send(frame: ServerFrame): SendStatus;
  /** Sends a frame along with what comes next, at the end of the turn at the latest: one write to the kernel in place of two. */
  sendWithNext(frame: ServerFrame): void;
  /** Sends one message to this session alone (replay). */
  deliver(message: ChannelMessage): SendStatus;
  /** From this moment the session gets what is published to the channel, after everything sent before. */
  join(channel: OutletChannel): void;
  leave(channel: OutletChannel): void;
  ping(): void;
  /** Bytes accepted that the kernel has not taken yet. */
  buffered(): number;
  /** Closes with a code of `closeCodes`; what was sent before is delivered first if the peer reads it. */
  close(code: number, reason: string): void;
}

/** The slice of a channel that an outlet needs. */
export interface OutletChannel {
  readonly jsonTopic: string;
  readonly msgpackTopic: string;
  jsonCount: number;
  msgpackCount: number;
  addStream(stream: StreamOutlet): void;
  removeStream(stream: StreamOutlet): void;
}

/** An outlet that µWS cannot publish to (an event stream): the fan-out calls each one. */
export interface StreamOutlet {
  deliver(message: ChannelMessage): SendStatus;
  send(frame: ServerFrame): SendStatus;
}
