/**
 * Every bound of the wire protocol, in one place. The grammar bounds are part of version 1 and fixed; the
 * others are defaults, each with a setting on the node (`TOPICAST_LIMIT_…`).
 */
export const grammarLimits = {
  topicBytesMax: 200,
  topicTokensMax: 8,
  userIdCharsMax: 128,
  epochCharsMax: 32,
  messageIdCharsMax: 128,
  /** How deep arrays and maps of a payload may nest (a plain value is 0 deep, `[]` is 1). Holds for both codecs. */
  payloadDepthMax: 64,
} as const;

export interface Limits {
  /** One frame from a client. A larger one is answered `payload_too_large`; see also `frameBytesHardMax`. */
  readonly frameBytesMax: number;
  /** The `data` of one message, in its publisher's encoding. */
  readonly payloadBytesMax: number;
  /** Subscriptions (topics and patterns together) of one connection. */
  readonly topicsMax: number;
  /** Patterns among them: each new one is compared with the others. */
  readonly patternsMax: number;
  readonly tokenBytesMax: number;
  /** Request line and headers of an HTTP request or a handshake. */
  readonly headerBytesMax: number;
  /** Bytes that may wait for one slow socket before messages are dropped and the socket must resync. */
  readonly bufferBytesMax: number;
  /** Sustained frames a second from one connection, and how many may come at once. */
  readonly framesPerSecMax: number;
  readonly framesBurstMax: number;
}

export const defaultLimits: Limits = {
  frameBytesMax: 64 * 1024,
  payloadBytesMax: 256 * 1024,
  topicsMax: 512,
  patternsMax: 64,
  tokenBytesMax: 8 * 1024,
  headerBytesMax: 16 * 1024,
  bufferBytesMax: 1024 * 1024,
  framesPerSecMax: 100,
  framesBurstMax: 200,
};
