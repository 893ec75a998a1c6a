import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { NatsLink } from '../../broker/nats-link.js';
import { NatsFollowers } from '../../broker/nats-followers.js';
import type { NatsStream } from '../../broker/nats-stream.js';
import { createSubjects } from '../../broker/nats-subjects.js';
import { contains } from '../../protocol/topic.js';

const token = fc.constantFrom('a', 'b', 'c');
const pattern = fc
  .tuple(fc.array(fc.oneof(token, fc.constant('*')), { maxLength: 3 }), fc.constantFrom('*', '>'))
  .map(([middle, last]) => ['item', ...middle, last].join('.'));
const step = fc.record({ add: fc.boolean(), filter: pattern, pick: fc.nat() });

function makeFollowers(): NatsFollowers {
  const link = {
    subscribe: () => ({ unsubscribe: () => undefined }),
    api: () => Promise.resolve({}),
  } as unknown as NatsLink;
  return new NatsFollowers({
    link,
    subjects: createSubjects('tc'),
    stream: { namespace: 'item', name: 'tc_item' } as unknown as NatsStream,
    onMessage: () => undefined,
    onFault: unexpected,
  });
}

it('reads the maximal patterns of what is wanted, whatever came and went before', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const followers = makeFollowers();
      const wanted: { key: string; filter: string }[] = [];
      for (const [i, { add, filter, pick }] of steps.entries()) {
        if (add) {
          const key = String(i);
          if (!followers.join(key, [filter])) await followers.add(key, [filter], 0);
          wanted.push({ key, filter });
        } else if (wanted.length > 0) {
          followers.remove(wanted.splice(pick % wanted.length, 1)[0]!.key);
        }
        const distinct = [...new Set(wanted.map((one) => one.filter))];
        const maximal = distinct.filter((f) => !distinct.some((other) => other !== f && contains(other, f)));
        expect([...followers.filters].sort()).toEqual(maximal.sort());
      }
      followers.stop();
    }),
  );
});

it('reads the whole stream once when there are many, and apart again when there are few', async () => {
  const followers = makeFollowers();
  for (let i = 0; i < 32; i++) await followers.add(String(i), [`item.${i}.*`], 0);
  expect(followers.filters).toHaveLength(32);
  await followers.add('32', ['item.32.*'], 0);
  expect(followers.filters).toEqual(['item.>']);
  for (let i = 0; i < 16; i++) followers.remove(String(i));
  expect(followers.filters).toEqual(['item.>']);
  followers.remove('16');
  expect(followers.filters).toHaveLength(16);
  followers.stop();
});

function unexpected(error: unknown): never {
  throw error;
}
