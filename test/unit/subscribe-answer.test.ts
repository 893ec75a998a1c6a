import { describe, expect, it } from 'vitest';
import { SubscribeAnswer } from '../../node/subscribe-answer.js';
import type { ServerFrame, SubscribedTopic } from '../../protocol/frames.js';

/** The check phase, in which answers that did not become complete are sent. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function createAnswer(expected: number, req?: number) {
  const frames: Extract<ServerFrame, { type: 'subscribed' }>[] = [];
  const send = (frame: ServerFrame): void => {
    if (frame.type === 'subscribed') frames.push(frame);
  };
  return { frames, answer: new SubscribeAnswer(send, expected, req) };
}

const outcome = (topic: string, offset = 1): SubscribedTopic => {
  return { topic, epoch: 'e', offset, recovered: true };
};

describe('SubscribeAnswer', () => {
  it('sends one frame at once when every outcome is known', () => {
    const { answer, frames } = createAnswer(2, 7);
    void answer.add(outcome('d.a'));
    expect(frames).toEqual([]);
    void answer.add({ topic: 'x', error: 'forbidden' });
    expect(frames).toEqual([
      { type: 'subscribed', req: 7, topics: [outcome('d.a'), { topic: 'x', error: 'forbidden' }] },
    ]);
  });

  it('sends what is known at the end of the turn, and the rest later', async () => {
    const { answer, frames } = createAnswer(3);
    void answer.add(outcome('d.a'));
    void answer.add(outcome('d.b'));
    await turn();
    expect(frames.map(({ topics }) => topics.map(({ topic }) => topic))).toEqual([['d.a', 'd.b']]);
    void answer.add(outcome('d.c'));
    expect(frames).toHaveLength(2);
    expect(frames[1]).not.toHaveProperty('req');
  });

  it('resolves when the outcome has been sent, not before', async () => {
    const { answer, frames } = createAnswer(2);
    let sentWhenTold = -1;
    const told = answer.add(outcome('d.a')).then(() => (sentWhenTold = frames.length));
    await Promise.resolve();
    expect(sentWhenTold).toBe(-1);
    await told;
    expect(sentWhenTold).toBe(1);
  });

  it('cuts a long answer into frames', () => {
    const { answer, frames } = createAnswer(600);
    for (let i = 0; i < 600; i++) void answer.add(outcome(`d.${i}`));
    expect(frames.map(({ topics }) => topics.length)).toEqual([256, 256, 88]);
  });

  it('replaces an outcome that has not been told, and only such a one', async () => {
    const { answer, frames } = createAnswer(2);
    void answer.add(outcome('d.a'));
    expect(answer.replace(outcome('d.a', 9))).toBe(true);
    expect(answer.replace(outcome('d.b', 9))).toBe(false);
    await turn();
    expect(answer.replace(outcome('d.a', 10))).toBe(false);
    expect(frames).toEqual([{ type: 'subscribed', topics: [outcome('d.a', 9)] }]);
  });

  it('leaves out what was withdrawn, and sends nothing when that was all', async () => {
    const { answer, frames } = createAnswer(3);
    void answer.add(outcome('d.a'));
    void answer.add(outcome('d.b'));
    answer.withdraw('d.a');
    await turn();
    expect(frames.map(({ topics }) => topics.map(({ topic }) => topic))).toEqual([['d.b']]);
    const { answer: other, frames: none } = createAnswer(2);
    const told = other.add(outcome('d.a'));
    other.withdraw('d.a');
    await told;
    expect(none).toEqual([]);
  });
});
