import type { Channel } from './channel.js';
import type { HotTopic } from './peer-commands.js';

/** Shorter windows make rates jump. */
const windowMsMin = 1000;

type Counted = Pick<Channel, 'filters' | 'subscribers' | 'messages' | 'sampledMessages' | 'messagesPerSec'>;

/**
 * Which topics of this node carry most. Deliveries only count up a number of their channel; rates are worked out when somebody asks, over
 * the time since that was done last.
 */
export class HotTopics {
  readonly #channels: () => Iterable<Counted>;
  readonly #now: () => number;
  #sampledAt: number;

  /** @param now ms, of a clock that only goes forward */
  constructor(channels: () => Iterable<Counted>, now: () => number = () => performance.now()) {
    this.#channels = channels;
    this.#now = now;
    this.#sampledAt = now();
  }

  /** The hottest ones that have carried anything, the hottest first: by messages a second, then by messages in all. */
  top(count: number): HotTopic[] {
    this.#sample();
    const hottest: Counted[] = [];
    for (const channel of this.#channels()) {
      if (channel.messages === 0) continue;
      const last = hottest.at(-1);
      if (hottest.length === count && last !== undefined && !isHotter(channel, last)) continue;
      const place = hottest.findIndex((other) => isHotter(channel, other));
      hottest.splice(place < 0 ? hottest.length : place, 0, channel);
      hottest.length = Math.min(hottest.length, count);
    }
    return hottest.map(({ filters, messages, messagesPerSec, subscribers }) => {
      return { filters: [...filters], messages, messagesPerSec, subscribers };
    });
  }

  #sample(): void {
    const elapsedMs = this.#now() - this.#sampledAt;
    if (elapsedMs < windowMsMin) return;
    this.#sampledAt += elapsedMs;
    for (const channel of this.#channels()) {
      channel.messagesPerSec = ((channel.messages - channel.sampledMessages) * 1000) / elapsedMs;
      channel.sampledMessages = channel.messages;
    }
  }
}

function isHotter(a: Counted, b: Counted): boolean {
  return a.messagesPerSec === b.messagesPerSec
    ? a.messages > b.messages
    : a.messagesPerSec > b.messagesPerSec;
}
