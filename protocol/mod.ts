/** The public surface of the protocol: frames, codecs, topics, positions, payloads, codes and limits. */
export type { Codec, Encoded } from './codec.js';
export {
  decodeJsonClient,
  decodeJsonServer,
  encodeJsonClient,
  encodeJsonServer,
  jsonCodec,
} from './codec-json.js';
export { encodeMsgpackClient, encodeMsgpackServer, msgpackCodec } from './codec-msgpack.js';
export {
  closeCodes,
  errorCodes,
  shouldReconnect,
  type CloseCode,
  type CloseReason,
  type ErrorCode,
} from './codes.js';
export {
  clientFrameNumbers,
  frameFields,
  serverFrameNumbers,
  type ClientFrame,
  type ClientFrameType,
  type ServerFrame,
  type ServerFrameType,
  type SubscribedTopic,
  type TopicRequest,
} from './frames.js';
export { elements, members, parseJson, singleLine, type JsonMember, type JsonSpan } from './json-scan.js';
export { defaultLimits, grammarLimits, type Limits } from './limits.js';
export { skipValue } from './msgpack-scan.js';
export { jsonPayload } from './payload-json.js';
export { msgpackPayload } from './payload-msgpack.js';
export type { JsonPayload, MsgpackPayload, Payload, PayloadFormat } from './payload.js';
export { formatPosition, isEpoch, isOffset, parsePosition, type Position } from './position.js';
export { failure, success, type Failure, type Result } from './result.js';
export { formatTopicRequest, parseTopicRequest } from './topic-request.js';
export {
  contains,
  intersects,
  isPattern,
  isUserId,
  matches,
  namespaceOf,
  parseFilter,
  parseGrant,
  parseTopic,
} from './topic.js';
export { transcode } from './transcode.js';
