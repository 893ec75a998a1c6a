import type { SubscribedTopic, TopicRequest } from '../../protocol/frames.js';
import { formatPosition, parsePosition, type Position } from '../../protocol/position.js';

/** What one user has seen of each durable topic and pattern that it holds: what it names when it comes back. */
export class Positions {
  readonly #held = new Map<string, Position>();

  /** The topic with its position, as the handshake's query takes it. */
  inQuery(topic: string): string {
    const position = this.#held.get(topic);
    return position === undefined ? topic : `${topic}@${formatPosition(position)}`;
  }

  /** The same for a `subscribe` frame. */
  request(topic: string): TopicRequest {
    return { topic, ...this.#held.get(topic) };
  }

  /** @returns what is wrong with the answer, if anything is */
  subscribed(answer: SubscribedTopic): string | undefined {
    if ('error' in answer) return `was refused ${answer.topic}: ${answer.error}`;
    if (!('offset' in answer)) return undefined;
    const resumed = this.#held.get(answer.topic);
    this.#held.set(answer.topic, { epoch: answer.epoch, offset: answer.offset });
    if (resumed === undefined || answer.recovered) return undefined;
    return `could not resume ${answer.topic} from ${formatPosition(resumed)}`;
  }

  /**
   * Takes a message into account: it advances the topic's position or, when it came for a pattern, the pattern's, and then the exact topic's if that is held too.
   * @returns what is wrong with it, if anything is
   */
  message(topic: string, offset: number, pattern: string | undefined): string | undefined {
    const key = pattern ?? topic;
    const position = this.#held.get(key);
    if (position === undefined) return `got ${topic} at ${offset} for ${key}, which it does not hold`;
    const behind = offset <= position.offset;
    this.advance(key, offset);
    this.advance(topic, offset);
    return behind
      ? `got ${topic} at ${offset} for ${key}, which was at ${position.offset} already`
      : undefined;
  }

  /** Moves a held position forwards; never back. */
  advance(key: string, offset: number): void {
    const position = this.#held.get(key);
    if (position === undefined || offset <= position.offset) return;
    this.#held.set(key, { epoch: position.epoch, offset });
  }

  /** The floors of a `pong`: everything up to them has been sent, so the positions of a whole namespace move up. */
  floors(floors: Readonly<Record<string, string>>): void {
    for (const [namespace, text] of Object.entries(floors)) {
      const floor = parsePosition(text);
      if (!floor.ok) throw new Error(`the floor of ${namespace} is not a position: ${text}`);
      for (const [key, position] of this.#held) {
        if (key.split('.', 1)[0] !== namespace || position.epoch !== floor.value.epoch) continue;
        this.advance(key, floor.value.offset);
      }
    }
  }
}
