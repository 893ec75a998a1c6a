import type { ServerFrame } from '../protocol/frames.js';
import { formatPosition, type Position } from '../protocol/position.js';
import { failure, success, type Result } from '../protocol/result.js';
import { parseTopicRequest, formatTopicRequest } from '../protocol/topic-request.js';
import { isPattern, matches, parseFilter } from '../protocol/topic.js';

/** Bytes of an event's `id`: a browser sends it back in a header, whose block is bounded. */
export const eventIdBytesMax = 8 * 1024;

/**
 * What an event stream has been sent: the positions of all its durable topics and patterns. Written as the `id` of its events,
 * `topic@epoch:offset,…`, so that the browser, which keeps only the last one, can resume all of them.
 */
export class StreamPositions {
  readonly #positions = new Map<string, Position>();
  /** Those of them that hold a wildcard: each is compared with the topic of each message. */
  readonly #patterns = new Set<string>();
  #bytes = 0;

  /** Takes in a frame. @returns whether a position changed */
  apply(frame: ServerFrame): boolean {
    switch (frame.type) {
      case 'subscribed':
        for (const topic of frame.topics) {
          if ('epoch' in topic) this.#set(topic.topic, { epoch: topic.epoch, offset: topic.offset });
        }
        return true;
      case 'unsubscribed':
        for (const topic of frame.topics) this.#remove(topic);
        return true;
      case 'gap':
        this.#advance(frame.topic, frame.to);
        return true;
      default:
        return false;
    }
  }

  /** A message was sent: it advances every topic and pattern that it came for. `offset` 0, on a live topic, changes nothing. */
  advance(topic: string, offset: number): void {
    if (offset === 0) return;
    this.#advance(topic, offset);
    for (const pattern of this.#patterns) if (matches(pattern, topic)) this.#advance(pattern, offset);
  }

  /** '' when nothing durable is subscribed. */
  get id(): string {
    const parts: string[] = [];
    for (const [topic, position] of this.#positions) parts.push(`${topic}@${formatPosition(position)}`);
    return parts.join(',');
  }

  #set(filter: string, position: Position): void {
    this.#remove(filter);
    const bytes = positionBytes(filter, position.epoch);
    // Only what the server subscribed later can be too much. A stream that comes back does not name that, so its position would be of no use.
    if (this.#bytes + bytes > eventIdBytesMax) return;
    this.#bytes += bytes;
    this.#positions.set(filter, position);
    if (isPattern(filter)) this.#patterns.add(filter);
  }

  #advance(filter: string, offset: number): void {
    const position = this.#positions.get(filter);
    if (position === undefined || position.offset >= offset) return;
    this.#positions.set(filter, { epoch: position.epoch, offset });
  }

  #remove(filter: string): void {
    const position = this.#positions.get(filter);
    if (position === undefined) return;
    this.#bytes -= positionBytes(filter, position.epoch);
    this.#positions.delete(filter);
    this.#patterns.delete(filter);
  }
}

/** What a position takes in an id at most, whatever its offset grows to. */
export function positionBytes(filter: string, epoch: string): number {
  return formatTopicRequest({ topic: filter, epoch, offset: Number.MAX_SAFE_INTEGER }).length + 1;
}

/** Reads an `id` that was sent back. Anything that is not one is refused: resuming elsewhere would lose messages silently. */
export function parseEventId(text: string): Result<ReadonlyMap<string, Position>> {
  const positions = new Map<string, Position>();
  if (text.length > eventIdBytesMax) return failure('invalid_frame', 'the last event id is too long');
  for (const item of text === '' ? [] : text.split(',')) {
    const request = parseTopicRequest(item);
    if (!request.ok) return request;
    const { topic, epoch, offset } = request.value;
    if (epoch === undefined || offset === undefined || !parseFilter(topic).ok) {
      return failure('invalid_frame', 'the last event id is not a list of topic@epoch:offset');
    }
    positions.set(topic, { epoch, offset });
  }
  return success(positions);
}
