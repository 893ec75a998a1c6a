import fc from 'fast-check';
import type { Msg } from 'nats';
import { expect, it } from 'vitest';
import type { NatsLink } from '../../broker/nats-link.js';
import { NatsLive } from '../../broker/nats-live.js';
import { createSubjects } from '../../broker/nats-subjects.js';
import type { SubscriptionOwner, TopicSubscription } from '../../broker/nats-subscription.js';
import { contains, matches } from '../../protocol/topic.js';

/** Few tokens, so that filters and topics meet often. */
const token = fc.constantFrom('a', 'b', 'c');
const topic = fc.array(token, { minLength: 1, maxLength: 4 }).map((tokens) => tokens.join('.'));
const filter = fc
  .tuple(token, fc.array(fc.oneof(token, fc.constant('*')), { maxLength: 3 }), fc.boolean())
  .map(([first, rest, arrow]) => [first, ...rest, ...(arrow ? ['>'] : [])].join('.'));
const step = fc.record({ add: fc.boolean(), filter: fc.oneof(filter, topic), pick: fc.nat() });

/** Delivers as a server would: once for each subscription that matches. */
class FakeServer {
  readonly held = new Map<string, (message: Msg) => void>();
  most = 0;

  subscribeTopic(subject: string, key: string, owner: SubscriptionOwner): TopicSubscription {
    const filter = subject.slice('tc.live.'.length);
    expect(this.held.has(filter)).toBe(false);
    this.held.set(filter, (message) => owner.onMessage(key, message));
    return { unsubscribe: () => this.held.delete(filter) } as unknown as TopicSubscription;
  }

  publish(topic: string): void {
    for (const [filter, receive] of this.held) {
      if (matches(filter, topic)) receive({ subject: `tc.live.${topic}` } as Msg);
    }
  }
}

it('holds the maximal ones of what is wanted, and hands on each message of it once', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), fc.array(topic, { maxLength: 8 }), (steps, topics) => {
      const server = new FakeServer();
      const received: string[] = [];
      const link = server as unknown as NatsLink;
      const live = new NatsLive(link, createSubjects('tc'), (topic) => received.push(topic), unexpected);
      const wanted: string[] = [];
      for (const { add, filter, pick } of steps) {
        if (add) {
          live.add([filter]);
          wanted.push(filter);
        } else if (wanted.length > 0) {
          live.remove(wanted.splice(pick % wanted.length, 1));
        }
        const distinct = [...new Set(wanted)];
        const maximal = distinct.filter((f) => !distinct.some((other) => other !== f && contains(other, f)));
        expect([...server.held.keys()].sort()).toEqual(maximal.sort());
        for (const topic of topics) {
          received.length = 0;
          server.publish(topic);
          expect(received).toEqual(wanted.some((f) => matches(f, topic)) ? [topic] : []);
        }
      }
    }),
  );
});

function unexpected(error: unknown): never {
  throw error;
}
