import { expect, expectTypeOf, test } from 'vitest';
import type { WebSocket as WsWebSocket } from 'ws';
import {
  connect,
  type Client,
  type Message,
  type Published,
  type SocketConstructor,
} from '../../client/mod.js';
import { json } from '../../client/codec.js';
import { msgpack, MsgpackExtension } from '../../client/msgpack.js';
import { fromWxRequest, fromWxSocket, type WxSocketTask } from '../../client/wx.js';
import { encodeMsgpackServer, msgpackPayload } from '../../protocol/mod.js';
import { Signal } from '../support/signal.js';

/** A value through the encoder of one client and the decoder of another. */
function through(value: unknown): unknown {
  const data = msgpack.payload(value);
  const received = msgpack.decode(encodeMsgpackServer({ type: 'msg', topic: 'a', data }));
  if (!received.ok) throw new Error(received.message);
  return received.value.data;
}

test.each([
  [null],
  [1.5],
  [-(2 ** 40)],
  [2n ** 63n],
  ['ü𝄞'],
  [[1, [true, {}]]],
  [{ a: { b: [] } }],
  [new Uint8Array([1, 2, 3])],
  [new Map<unknown, unknown>([[1, 'one']])],
  [JSON.parse('{"__proto__":{"x":1}}') as unknown],
])('MessagePack carries %o', (value) => {
  expect(through(value)).toEqual(value);
});

test('MessagePack takes from objects what JSON takes', () => {
  expect(through({ at: new Date(0), gone: undefined, call: () => 1 })).toEqual({
    at: '1970-01-01T00:00:00.000Z',
  });
  expect(through(undefined)).toBeNull();
});

test('an extension comes as it is', () => {
  const payload = msgpackPayload(new Uint8Array([0xd4, 5, 9]));
  if (!payload.ok) throw new Error(payload.message);
  const received = msgpack.decode(encodeMsgpackServer({ type: 'direct', data: payload.value }));
  expect(received).toMatchObject({ value: { data: new MsgpackExtension(5, new Uint8Array([9])) } });
});

test('what has no value is refused, by either codec', () => {
  const cycle: unknown[] = [];
  cycle.push(cycle);
  for (const value of [cycle, () => 1, Symbol('s')]) {
    expect(() => msgpack.payload(value)).toThrow(TypeError);
    expect(() => json.payload(value)).toThrow(TypeError);
  }
  expect(() => msgpack.payload(2n ** 64n)).toThrow(TypeError);
  expect(msgpack.decode('text').ok).toBe(false);
  expect(json.decode(new ArrayBuffer(1)).ok).toBe(false);
});

test('a mini-program socket carries a whole conversation', async () => {
  const listeners: Partial<Record<'message' | 'close', (event: never) => void>> = {};
  const sent: (string | ArrayBuffer)[] = [];
  const signal = new Signal();
  const asked: { url: string; protocols: string[] }[] = [];
  const task: WxSocketTask = {
    onOpen: () => undefined,
    onMessage: (listener) => (listeners.message = listener),
    onClose: (listener) => (listeners.close = listener),
    onError: () => undefined,
    send: ({ data }) => sent.push(data),
    close: () => undefined,
  };
  const webSocket = fromWxSocket({
    connectSocket: ({ url, protocols }) => {
      asked.push({ url, protocols });
      signal.notify();
      return task;
    },
  });
  const fetch = fromWxRequest({
    request: ({ success, header }) => {
      expect(header).toEqual({ authorization: 'Bearer t' });
      success({ statusCode: 403, header: { 'RETRY-AFTER': '1' } });
    },
  });
  const client = connect('https://node', { webSocket, fetch, token: 't', topics: ['live.x'] });
  const got: Message[] = [];
  client.on('message', (message) => got.push(message));
  client.on('state', () => signal.notify());
  client.on('error', () => signal.notify());
  await signal.until('a connect', () => asked.length === 1);
  expect(asked).toEqual([
    { url: 'wss://node/v1/connect?topics=live.x', protocols: ['topicast.v1.json', 'bearer.t'] },
  ]);
  const say = (data: string): void => listeners.message?.({ data } as never);
  say('{"type":"welcome","session":"n.1","node":"n","pingSec":30,"idleSec":180}');
  say('{"type":"msg","topic":"live.x","data":[1]}');
  expect(got).toEqual([{ topic: 'live.x', data: [1] }]);
  client.wake();
  expect(sent).toEqual(['{"type":"ping"}']);
  listeners.close?.({ code: 1006 } as never);
  await signal.until('another try', () => asked.length === 2);
  listeners.close?.({ code: 1006 } as never);
  await signal.until('the refusal', () => client.state === 'closed');
});

test('the types say what the calls give', () => {
  expectTypeOf(connect).returns.toEqualTypeOf<Client>();
  expectTypeOf<Client['publish']>().returns.resolves.toEqualTypeOf<Published>();
  expectTypeOf<typeof WsWebSocket>().toExtend<SocketConstructor>();
  expectTypeOf<typeof globalThis.WebSocket>().toExtend<SocketConstructor>();
  const check = (client: Client): void => {
    client.subscribe<{ price: number }>('item.1', ({ data }) => expectTypeOf(data.price).toBeNumber());
    client.subscribe('item.1', ({ data }) => expectTypeOf(data).toBeUnknown());
    client.on('gap', (gap) => expectTypeOf(gap.from).toBeNumber());
    // @ts-expect-error there is no such event
    client.on('open', () => undefined);
    // @ts-expect-error a storage has two methods
    connect('http://node', { storage: {} });
    connect('http://node', { storage: sessionStorage });
  };
  expect(check).toBeTypeOf('function');
});
