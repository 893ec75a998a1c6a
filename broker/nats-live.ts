import type { Msg } from 'nats';
import { contains, isPattern, matches } from '../protocol/topic.js';
import type { NatsLink } from './nats-link.js';
import type { Subjects } from './nats-subjects.js';
import type { SubscriptionOwner, TopicSubscription } from './nats-subscription.js';

/**
 * Subscriptions to live topics. Two that match the same message would get it twice, so only maximal ones are held: what a pattern
 * covers rides along with it. Of patterns that only meet (`a.*.c`, `a.b.*`) the one that was held first hands on what both bring.
 */
export class NatsLive implements SubscriptionOwner {
  readonly #link: Pick<NatsLink, 'subscribeTopic'>;
  readonly #subjects: Subjects;
  readonly #handOn: (topic: string, message: Msg) => void;
  readonly onFault: (error: unknown) => void;
  /** How many interests name each filter. */
  readonly #wanted = new Map<string, number>();
  readonly #held = new Map<string, TopicSubscription>();
  /** The held ones that are patterns, in the order in which they were. */
  readonly #patterns = new Set<string>();

  constructor(
    link: Pick<NatsLink, 'subscribeTopic'>,
    subjects: Subjects,
    handOn: (topic: string, message: Msg) => void,
    onFault: (error: unknown) => void,
  ) {
    this.#link = link;
    this.#subjects = subjects;
    this.#handOn = handOn;
    this.onFault = onFault;
  }

  add(filters: readonly string[]): void {
    for (const filter of filters) {
      const count = this.#wanted.get(filter) ?? 0;
      this.#wanted.set(filter, count + 1);
      if (count > 0 || this.#isCovered(filter)) continue;
      this.#subscribe(filter);
      if (!isPattern(filter)) continue;
      for (const narrower of [...this.#held.keys()]) {
        if (narrower !== filter && contains(filter, narrower)) this.#unsubscribe(narrower);
      }
    }
  }

  remove(filters: readonly string[]): void {
    for (const filter of filters) {
      const count = this.#wanted.get(filter) ?? 0;
      if (count > 1) {
        this.#wanted.set(filter, count - 1);
        continue;
      }
      this.#wanted.delete(filter);
      if (!this.#held.has(filter)) continue;
      this.#unsubscribe(filter);
      if (isPattern(filter)) this.#uncover(filter);
    }
  }

  /** What rode along with a pattern that is gone needs a subscription again: all of it that nothing wider covers. */
  #uncover(pattern: string): void {
    const freed = [...this.#wanted.keys()].filter((f) => contains(pattern, f) && !this.#isCovered(f));
    const patterns = freed.filter(isPattern);
    for (const filter of freed) {
      if (!patterns.some((other) => other !== filter && contains(other, filter))) this.#subscribe(filter);
    }
  }

  #isCovered(filter: string): boolean {
    if (this.#held.has(filter)) return true;
    for (const pattern of this.#patterns) if (contains(pattern, filter)) return true;
    return false;
  }

  onMessage(filter: string, message: Msg): void {
    const topic = this.#subjects.topicOf(message.subject);
    if (this.#handsOn(filter, topic)) this.#handOn(topic, message);
  }

  #subscribe(filter: string): void {
    const subject = this.#subjects.live(filter);
    this.#held.set(filter, this.#link.subscribeTopic(subject, filter, this));
    if (isPattern(filter)) this.#patterns.add(filter);
  }

  #handsOn(filter: string, topic: string): boolean {
    if (this.#patterns.size < 2) return true;
    for (const pattern of this.#patterns) {
      if (pattern === filter) return true;
      if (matches(pattern, topic)) return false;
    }
    return true;
  }

  #unsubscribe(filter: string): void {
    this.#held.get(filter)?.unsubscribe();
    this.#held.delete(filter);
    this.#patterns.delete(filter);
  }
}
