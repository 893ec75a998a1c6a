import type { TopicRequest } from './frames.js';
import { formatPosition, parsePosition } from './position.js';
import { success, type Result } from './result.js';

/**
 * Reads `topic` or `topic@epoch:offset`, the form of the handshake's `topics` and of the strings of a
 * `subscribe`. The topic itself is not checked, so that each one can be answered on its own: after a wrong
 * position the `@` stays part of the topic, which no topic may hold. Hence it has no failure of its own.
 */
export function parseTopicRequest(text: string): Result<TopicRequest> {
  const at = text.indexOf('@');
  if (at < 0) return success({ topic: text });
  const position = parsePosition(text.slice(at + 1));
  if (!position.ok) return success({ topic: text });
  return success({ topic: text.slice(0, at), epoch: position.value.epoch, offset: position.value.offset });
}

/** The shortest form of a request that `parseTopicRequest` reads. It has no room for `last`, which is left out. */
export function formatTopicRequest(request: TopicRequest): string {
  const { topic, epoch, offset } = request;
  return epoch === undefined || offset === undefined
    ? topic
    : `${topic}@${formatPosition({ epoch, offset })}`;
}

/** How both codecs write a request: a plain string where nothing is lost by it. */
export function topicRequestToWire(request: TopicRequest): string | TopicRequest {
  const { topic, epoch, offset, last } = request;
  const isPlain = epoch === undefined && offset === undefined && last === undefined && !topic.includes('@');
  return isPlain ? topic : request;
}
