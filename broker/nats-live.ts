import type { Msg, NatsConnection, Subscription } from 'nats';
import { contains, isPattern, matches } from '../protocol/topic.js';
import type { Subjects } from './nats-subjects.js';

/**
 * Subscriptions to live topics. Two that match the same message would get it twice, so only maximal ones are held: what a pattern
 * covers rides along with it.
 */
export class NatsLive {
  readonly #nc: NatsConnection;
  readonly #subjects: Subjects;
  readonly #onMessage: (topic: string, message: Msg) => void;
  /** How many interests name each filter. */
  readonly #wanted = new Map<string, number>();
  readonly #held = new Map<string, Subscription>();

  constructor(nc: NatsConnection, subjects: Subjects, onMessage: (topic: string, message: Msg) => void) {
    this.#nc = nc;
    this.#subjects = subjects;
    this.#onMessage = onMessage;
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

  /** What rode along with a pattern that is gone needs a subscription again, widest first. */
  #uncover(pattern: string): void {
    const freed = [...this.#wanted.keys()].filter((f) => contains(pattern, f));
    const maximal = freed.filter((f) => !freed.some((other) => other !== f && contains(other, f)));
    for (const filter of maximal) if (!this.#isCovered(filter)) this.#subscribe(filter);
  }

  #isCovered(filter: string): boolean {
    if (this.#held.has(filter)) return true;
    for (const held of this.#held.keys()) {
      if (isPattern(held) && (isPattern(filter) ? contains(held, filter) : matches(held, filter)))
        return true;
    }
    return false;
  }

  #subscribe(filter: string): void {
    const subscription = this.#nc.subscribe(this.#subjects.live(filter), {
      callback: (error, message) => {
        if (error === null) this.#onMessage(this.#subjects.topicOf(message.subject), message);
      },
    });
    this.#held.set(filter, subscription);
  }

  #unsubscribe(filter: string): void {
    this.#held.get(filter)?.unsubscribe();
    this.#held.delete(filter);
  }
}
