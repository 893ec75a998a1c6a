import fc from 'fast-check';
import { expect, it } from 'vitest';
import { MemoryStream } from '../../broker/memory-stream.js';
import { defaultNamespace } from '../../broker/namespaces.js';
import { matches } from '../../protocol/topic.js';
import { createTestClock } from '../support/test-clock.js';

const topics = ['n.a', 'n.b', 'n.c.x'];
const interests = [['n.a'], ['n.b'], ['n.>'], ['n.*'], ['n.*', 'n.c.>'], ['n.none']];
const settings = { ...defaultNamespace, delivery: 'durable', historyMax: 3, historySec: 10 } as const;

interface Stored {
  readonly topic: string;
  readonly offset: number;
  readonly at: number;
}

/** The rules of a stream in the plainest words: a list that is filtered after every step. */
class Model {
  kept: Stored[] = [];
  readonly all: Stored[] = [];

  add(message: Stored): void {
    this.all.push(message);
    this.kept.push(message);
    const same = this.kept.filter(({ topic }) => topic === message.topic);
    const over = same.slice(0, Math.max(0, same.length - settings.historyMax));
    this.kept = this.kept.filter((other) => !over.includes(other));
  }

  expire(now: number): void {
    this.kept = this.kept.filter(({ at }) => now - at < settings.historySec * 1000);
  }

  of(filters: readonly string[], messages: readonly Stored[]): Stored[] {
    return messages.filter(({ topic }) => filters.some((filter) => matches(filter, topic)));
  }
}

const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ publish: fc.constantFrom(...topics) }) },
  { weight: 2, arbitrary: fc.record({ advance: fc.integer({ min: 1, max: 6000 }) }) },
  { weight: 1, arbitrary: fc.record({ drop: fc.constant(true) }) },
);

it('keeps, pages and vouches as a list that is filtered after every step', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 4 }), (steps, limit) => {
      const clock = createTestClock();
      const stream = new MemoryStream(settings, clock.now);
      const model = new Model();
      for (const next of steps) {
        if ('advance' in next) {
          clock.advance(next.advance);
          model.expire(clock.now());
          stream.expire();
        } else if ('drop' in next) {
          model.kept.shift();
          stream.dropOldest();
        } else {
          const before = model.of([next.publish], model.kept).at(-1)?.offset ?? 0;
          const first = model.kept[0]?.offset ?? stream.head.offset + 1;
          const appended = stream.append(next.publish, { format: 'json', text: '1' });
          expect(appended).toEqual({ offset: model.all.length + 1, prev: before, first });
          model.add({ topic: next.publish, offset: appended.offset, at: clock.now() });
        }
      }
      compare(stream, model, limit);
    }),
    { numRuns: 300 },
  );
});

function compare(stream: MemoryStream, model: Model, limit: number): void {
  const end = model.all.length;
  expect(stream.head.offset).toBe(end);
  expect(stream.messages).toBe(model.kept.length);
  expect(stream.topics).toBe(new Set(model.kept.map(({ topic }) => topic)).size);
  if (model.kept.length === 0) expect(stream.bytes).toBe(0);
  for (const filters of interests) {
    const kept = model.of(filters, model.kept);
    const dropped = model.of(filters, model.all).filter((message) => !model.kept.includes(message));
    const newestDropped = dropped.at(-1)?.offset ?? 0;
    expect(stream.newest(filters)).toBe(kept.at(-1)?.offset ?? 0);
    const latest = stream.latest(filters, limit).messages;
    expect(latest.map(({ offset }) => offset)).toEqual(kept.slice(-limit).map(({ offset }) => offset));
    for (let after = 0; after <= end; after++) {
      const page = stream.history(filters, after, limit);
      const expected = kept.filter(({ offset }) => offset > after);
      const start = kept.length - expected.length;
      expect(page.messages.map(({ topic, offset, prev }) => ({ topic, offset, prev }))).toEqual(
        expected.slice(0, limit).map(({ topic, offset }, i) => ({
          topic,
          offset,
          prev: kept[start + i - 1]?.offset ?? 0,
        })),
      );
      expect(page.more).toBe(expected.length > limit);
      expect(page.upTo).toBe(page.more ? expected[limit - 1]?.offset : end);
      // Never when something is missing, and always when the plain rule of a stream says so.
      if (page.complete) expect(after).toBeGreaterThanOrEqual(newestDropped);
      expect(page.completeAfter).toBeGreaterThanOrEqual(newestDropped);
      if (page.complete) expect(page.completeAfter).toBeLessThanOrEqual(after);
      else expect(page.lostUpTo).toBeGreaterThanOrEqual(after);
      if (ruleOfStreams(kept, model, after)) expect(page.complete).toBe(true);
      expect(stream.recoverable(filters, after)).toBe(page.complete);
    }
    expect(stream.recoverable(filters, end + 1)).toBe(false);
  }
}

/** What can be told from the first offset of a stream and what it holds of each topic. */
function ruleOfStreams(kept: readonly Stored[], model: Model, after: number): boolean {
  const first = model.kept[0]?.offset ?? model.all.length + 1;
  if (after < first - 1) return false;
  return topics.every((topic) => {
    const held = kept.filter((message) => message.topic === topic);
    return held.length < settings.historyMax || held[0]!.offset <= after;
  });
}
