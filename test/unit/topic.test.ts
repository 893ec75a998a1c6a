import { describe, expect, test } from 'vitest';
import {
  contains,
  intersects,
  isPattern,
  isUserId,
  matches,
  namespaceOf,
  parseFilter,
  parseGrant,
  parseTopic,
} from '../../protocol/topic.js';
import { formatTopicRequest, parseTopicRequest } from '../../protocol/topic-request.js';

const longest = 'a'.repeat(200);
const valid = ['a', 'item.1042', 'user:7.x=y', 'A_b-c', 'a.b.c.d.e.f.g.h', longest];
const invalid = [
  '',
  '.',
  'a.',
  '.a',
  'a..b',
  'a b',
  'é',
  'a@b',
  'a/b',
  'a\n',
  `${longest}a`,
  'a.b.c.d.e.f.g.h.i',
];

describe('parseTopic', () => {
  test.each(valid)('takes %j', (text) => {
    expect(parseTopic(text)).toEqual({ ok: true, value: text });
  });

  test.each([...invalid, '*', 'a.*', 'a.>', 'a.b*'])('refuses %j', (text) => {
    expect(parseTopic(text)).toMatchObject({ ok: false, code: 'invalid_topic' });
  });
});

describe('parseFilter', () => {
  test.each([...valid, 'a.*', 'a.>', 'a.*.b', 'a.*.>'])('takes %j', (text) => {
    expect(parseFilter(text)).toEqual({ ok: true, value: text });
  });

  test.each([...invalid, '*', '>', '*.a', 'a.>.b', 'a.b>', 'a.**'])('refuses %j', (text) => {
    expect(parseFilter(text)).toMatchObject({ ok: false, code: 'invalid_topic' });
  });
});

describe('parseGrant', () => {
  test.each([...valid, '>', '*', '*.a', '*.>', 'a.>'])('takes %j', (text) => {
    expect(parseGrant(text)).toEqual({ ok: true, value: text });
  });

  test.each([...invalid, '>.a', '*.', '*a', 'a.>.b'])('refuses %j', (text) => {
    expect(parseGrant(text)).toMatchObject({ ok: false, code: 'invalid_topic' });
  });
});

test('only wildcards make a pattern', () => {
  expect(['a', 'a.b', 'a.*', 'a.>', 'a.*.b'].filter(isPattern)).toEqual(['a.*', 'a.>', 'a.*.b']);
});

test('the namespace is the first token', () => {
  expect(namespaceOf('item.1.2')).toBe('item');
  expect(namespaceOf('item')).toBe('item');
});

test('user ids', () => {
  expect(['u', 'a.b:c=d@e-f_g', 'x'.repeat(128)].every(isUserId)).toBe(true);
  expect(['', 'x'.repeat(129), 'a b', 'a/b', 'a\n', '*'].some(isUserId)).toBe(false);
});

test('a star is one token, a tail is one or more', () => {
  expect(matches('a.*', 'a.b')).toBe(true);
  expect(matches('a.*', 'a')).toBe(false);
  expect(matches('a.*', 'a.b.c')).toBe(false);
  expect(matches('a.>', 'a.b.c')).toBe(true);
  expect(matches('a.>', 'a')).toBe(false);
});

test('containment and intersection of patterns', () => {
  expect(contains('a.>', 'a.*')).toBe(true);
  expect(contains('a.*', 'a.>')).toBe(false);
  expect(contains('>', '*.>')).toBe(true);
  expect(intersects('a.*.c', 'a.b.*')).toBe(true);
  expect(intersects('a.*', 'a.b.>')).toBe(false);
});

describe('topic requests', () => {
  test.each([
    ['item.1', { topic: 'item.1' }],
    ['item.1@k3f9:1037', { topic: 'item.1', epoch: 'k3f9', offset: 1037 }],
    ['item.>@e:0', { topic: 'item.>', epoch: 'e', offset: 0 }],
    ['', { topic: '' }],
  ])('%j is read and written back', (text, request) => {
    expect(parseTopicRequest(text)).toEqual({ ok: true, value: request });
    expect(formatTopicRequest(request)).toBe(text);
  });

  test.each(['a@', 'a@e', 'a@e:', 'a@:1', 'a@e:01', 'a@e:-1', 'a@e:9007199254740993', 'a@b@e:1', 'a@e:1 '])(
    'the wrong position of %j stays in the topic, where the grammar refuses it',
    (text) => {
      expect(parseTopicRequest(text)).toEqual({ ok: true, value: { topic: text } });
      expect(parseFilter(text)).toMatchObject({ ok: false, code: 'invalid_topic' });
    },
  );
});
