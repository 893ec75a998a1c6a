import { describe, expect, it } from 'vitest';
import { readDirect } from '../../node/http-direct.js';
import { readInteger } from '../../node/http-input.js';
import { batchMessagesMax, readBatch } from '../../node/http-publish.js';
import { historyJson } from '../../node/http-topics.js';
import { readTopics } from '../../node/http-users.js';

describe('a batch', () => {
  it('keeps the data of each message as it was written', () => {
    const text = `{"messages": [ {"topic":"a","data": {"n" : 9007199254740993} , "id":"1"},
      {"d\\u0061ta":1.0,"topic":"b"} ], "other": [{"data":0}]}`;
    expect(readBatch(text)).toEqual({
      ok: true,
      value: [
        {
          topic: 'a',
          id: '1',
          data: { ok: true, value: { format: 'json', text: '{"n" : 9007199254740993}' } },
        },
        { topic: 'b', id: undefined, data: { ok: true, value: { format: 'json', text: '1.0' } } },
      ],
    });
  });

  it('takes the last of members of one name, in the list and in a message', () => {
    const read = readBatch(`{"messages":[1],"messages":[{"topic":"a","data":1,"data":[2]}]}`);
    expect(read.ok && read.value.map(({ data }) => data.ok && data.value)).toEqual([
      { format: 'json', text: '[2]' },
    ]);
  });

  it('may be empty and has a bound', () => {
    expect(readBatch('{"messages":[]}')).toEqual({ ok: true, value: [] });
    const message = { topic: 'a', data: 1 };
    const list = (length: number) => JSON.stringify({ messages: Array.from({ length }, () => message) });
    expect(readBatch(list(batchMessagesMax)).ok).toBe(true);
    expect(readBatch(list(batchMessagesMax + 1))).toMatchObject({ ok: false, code: 'invalid_frame' });
  });

  it('tells of a payload that is too deep in that message alone', () => {
    const deep = '['.repeat(80) + ']'.repeat(80);
    const read = readBatch(`{"messages":[{"topic":"a","data":${deep}},{"topic":"a","data":1}]}`);
    expect(read.ok && read.value.map(({ data }) => data.ok)).toEqual([false, true]);
  });

  it.each([
    ['{"messages":[}', /line 1, column 14/],
    ['[]', /expected \{"messages"/],
    ['{"messages":{}}', /expected \{"messages"/],
    ['{"messages":[{"topic":"a","data":1},null]}', /messages\[1\] is not an object/],
    ['{"messages":[{"topic":1,"data":1}]}', /messages\[0\]\.topic/],
    ['{"messages":[{"topic":"a"}]}', /messages\[0\]\.data is missing/],
    ['{"messages":[{"topic":"a","data":1,"id":2}]}', /messages\[0\]\.id/],
  ])('is refused as a whole when it is not one: %s', (text, message) => {
    const read = readBatch(text);
    expect(!read.ok && read.message).toMatch(message);
  });
});

describe('a message to many users', () => {
  it('keeps the data as it was written', () => {
    expect(readDirect('{"data":{"n":1e400},"userIds":["u1","u2"]}')).toEqual({
      ok: true,
      value: { userIds: ['u1', 'u2'], payload: { format: 'json', text: '{"n":1e400}' } },
    });
  });

  it.each(['{"userIds":"u1","data":1}', '{"userIds":[1],"data":1}', '{"userIds":["u1"]}', '7', '{'])(
    'is refused when it is not one: %s',
    (text) => expect(readDirect(text).ok).toBe(false),
  );

  it('names 10,000 users at most', () => {
    const text = (length: number) =>
      JSON.stringify({ data: 1, userIds: Array.from({ length }, (_, i) => `u${i}`) });
    expect(readDirect(text(10_000)).ok).toBe(true);
    expect(readDirect(text(10_001)).ok).toBe(false);
  });
});

describe('small parts', () => {
  it('reads the topics of a user each once, and not too many', () => {
    expect(readTopics('{"topics":["a","b","a"]}', 3)).toEqual({ ok: true, value: ['a', 'b'] });
    expect(readTopics('{"topics":["a","b"]}', 1)).toMatchObject({ ok: false, code: 'too_many_topics' });
    expect(readTopics('{"topics":[1]}', 1)).toMatchObject({ ok: false, code: 'invalid_frame' });
  });

  it.each([
    ['', 7],
    ['limit=', 7],
    ['limit=1', 1],
    ['limit=10', 10],
    ['limit=0', undefined],
    ['limit=11', undefined],
    ['limit=-1', undefined],
    ['limit=1.5', undefined],
    ['limit=1e1', undefined],
    ['limit=%201', undefined],
  ])('reads an integer of the query %s', (query, expected) => {
    const read = readInteger(new URLSearchParams(query), 'limit', [1, 10], 7);
    expect(read.ok ? read.value : undefined).toBe(expected);
  });

  it('writes stored payloads into a history as they are, MessagePack ones as JSON', () => {
    const page = {
      epoch: 'e',
      messages: [
        { topic: 'a.1', offset: 1, prev: 0, payload: { format: 'json', text: '{"n": 9007199254740993}' } },
        { topic: 'a.2', offset: 4, prev: 1, payload: { format: 'msgpack', bytes: Uint8Array.of(0xc3) } },
      ],
      more: true,
      complete: true,
      completeAfter: 0,
      lostUpTo: -1,
      upTo: 4,
    } as const;
    expect(historyJson(page, false)).toBe(
      '{"epoch":"e","messages":[{"offset":1,"data":{"n": 9007199254740993}},{"offset":4,"data":true}],"more":true}',
    );
    expect(historyJson(page, true)).toContain('{"topic":"a.2","offset":4,"data":true}');
  });
});
