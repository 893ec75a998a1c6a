import { setImmediate as turn } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import { WsOutlet } from '../../node/ws-outlet.js';
import type { WebSocket } from '../../node/uws.js';
import { jsonCodec } from '../../protocol/codec-json.js';
import type { ServerFrame } from '../../protocol/frames.js';

const first: ServerFrame = { type: 'resync', topics: ['first'] };
const second: ServerFrame = { type: 'resync', topics: ['second'] };
const channel = {
  jsonTopic: 'j/item.1',
  msgpackTopic: 'm/item.1',
  jsonCount: 0,
  msgpackCount: 0,
  addStream: () => undefined,
  removeStream: () => undefined,
};

/** What was called, in order; `[` and `]` are the begin and the end of one write. */
let calls: string[];
let answer: number;
let outlet: WsOutlet;

beforeEach(() => {
  calls = [];
  answer = 1;
  const socket = {
    send: (text: string) => {
      calls.push(/first|second/.exec(text)?.[0] ?? text);
      return answer;
    },
    cork: (run: () => void) => {
      calls.push('[');
      run();
      calls.push(']');
    },
    subscribe: () => calls.push('subscribe'),
    ping: () => calls.push('ping'),
    end: () => calls.push('end'),
  };
  outlet = new WsOutlet(socket as unknown as WebSocket<unknown>, jsonCodec);
});

describe('a frame that may wait for the next', () => {
  it('leaves in one write with it, and before it', async () => {
    outlet.sendWithNext(first);
    expect(calls).toEqual([]);
    expect(outlet.send(second)).toBe('sent');
    expect(calls).toEqual(['[', 'first', 'second', ']']);
    await turn();
    expect(calls).toHaveLength(4);
  });

  it('leaves alone at the end of the turn when nothing follows', async () => {
    outlet.sendWithNext(first);
    await turn();
    expect(calls).toEqual(['first']);
  });

  it('passes on what became of the next', () => {
    answer = 2;
    outlet.sendWithNext(first);
    expect(outlet.send(second)).toBe('dropped');
  });

  it.each([
    ['joining a channel', () => outlet.join(channel), 'subscribe'],
    ['a ping', () => outlet.ping(), 'ping'],
    ['the close', () => outlet.close(4000, 'draining'), 'end'],
    ['another that may wait', () => outlet.sendWithNext(second), undefined],
  ])('does not come after %s', async (_, next, call) => {
    outlet.sendWithNext(first);
    next();
    expect(calls).toEqual(call === undefined ? ['first'] : ['first', call]);
    await turn();
  });

  it('is forgotten with the socket', async () => {
    outlet.sendWithNext(first);
    outlet.onClosed();
    await turn();
    outlet.sendWithNext(second);
    await turn();
    expect(calls).toEqual([]);
  });
});
