import { describe, expect, it } from 'vitest';
import { bearerOf, queryTokenOf, readProtocols, tokenOf } from '../../node/token.js';

describe('readProtocols', () => {
  it.each<[string | undefined, unknown]>([
    [undefined, { codec: 'json' }],
    ['', { codec: 'json' }],
    [' , ', { codec: 'json' }],
    ['topicast.v1.json', { codec: 'json', answer: 'topicast.v1.json' }],
    ['topicast.v1.msgpack', { codec: 'msgpack', answer: 'topicast.v1.msgpack' }],
    [
      'bearer.a.b.c,topicast.v1.msgpack',
      { codec: 'msgpack', answer: 'topicast.v1.msgpack', bearer: 'a.b.c' },
    ],
    ['other, topicast.v1.json ,topicast.v1.msgpack', { codec: 'json', answer: 'topicast.v1.json' }],
    ['topicast.v1.msgpack, topicast.v1.json', { codec: 'msgpack', answer: 'topicast.v1.msgpack' }],
    ['topicast.v1.json, bearer.', { codec: 'json', answer: 'topicast.v1.json' }],
    ['topicast.v1.json, bearer.x, bearer.x', { codec: 'json', answer: 'topicast.v1.json', bearer: 'x' }],
  ])('reads %j', (header, value) => {
    expect(readProtocols(header)).toEqual({ ok: true, value });
  });

  it.each([
    'bearer.a.b.c',
    'mqtt',
    'topicast.v2.json',
    'TOPICAST.V1.JSON',
    'topicast.v1.json, bearer.a, bearer.b',
  ])('refuses %j, without repeating it', (header) => {
    const result = readProtocols(header);
    expect(result).toMatchObject({ ok: false, code: 'invalid_frame' });
    expect(JSON.stringify(result)).not.toContain('bearer.a');
  });
});

describe('bearerOf', () => {
  it.each<[string | undefined, string | undefined]>([
    ['Bearer abc', 'abc'],
    ['bearer   abc ', 'abc'],
    ['Bearer', undefined],
    ['Bearer ', undefined],
    ['Bearer a b', undefined],
    ['Basic abc', undefined],
    ['xBearer abc', undefined],
    [undefined, undefined],
  ])('%j', (header, token) => {
    expect(bearerOf(header)).toBe(token);
  });
});

describe('tokenOf', () => {
  const all = { bearer: 'p', authorization: 'Bearer h', query: 'token=q' };

  it('prefers the subprotocol, then the header, then the query', () => {
    expect(tokenOf(all, true)).toBe('p');
    expect(tokenOf({ ...all, bearer: undefined }, true)).toBe('h');
    expect(tokenOf({ query: all.query, authorization: 'Basic x' }, true)).toBe('q');
    expect(tokenOf({}, true)).toBeUndefined();
  });

  it('leaves the query alone where it is not allowed', () => {
    expect(tokenOf({ query: 'token=q' }, false)).toBeUndefined();
  });

  it('reads the first token of a query, decoded', () => {
    expect(queryTokenOf('topics=a&token=x%2Ey&token=z')).toBe('x.y');
    expect(queryTokenOf('token=')).toBeUndefined();
    expect(queryTokenOf(undefined)).toBeUndefined();
  });
});
