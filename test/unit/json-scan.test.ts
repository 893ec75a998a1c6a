import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { findJsonFault } from '../../protocol/json-fault.js';
import {
  elements,
  isDeeperThan,
  members,
  parseJson,
  singleLine,
  valueEnd,
} from '../../protocol/json-scan.js';
import { jsonPayload } from '../../protocol/payload-json.js';

function listMembers(text: string, at?: number): string[][] {
  return Array.from(members(text, at), ({ key, start, end }) => [key, text.slice(start, end)]);
}

function listElements(text: string, at?: number): string[] {
  return Array.from(elements(text, at), ({ start, end }) => text.slice(start, end));
}

describe('spans', () => {
  test('values are cut out as they were written', () => {
    expect(listMembers(' { "a" : 9007199254740993 , "b":1.0,"c":[1, {"d":2}] ,"e":"}\\"," } ')).toEqual([
      ['a', '9007199254740993'],
      ['b', '1.0'],
      ['c', '[1, {"d":2}]'],
      ['e', '"}\\","'],
    ]);
  });

  test('duplicate keys all come, and escapes in keys are resolved', () => {
    expect(listMembers('{"a":1,"\\u0061":2,"a\\"":3}')).toEqual([
      ['a', '1'],
      ['a', '2'],
      ['a"', '3'],
    ]);
  });

  test('a string may end in escaped backslashes', () => {
    expect(listMembers('{"a":"\\\\","b":"\\\\\\"","c":null}')).toEqual([
      ['a', '"\\\\"'],
      ['b', '"\\\\\\""'],
      ['c', 'null'],
    ]);
  });

  test('elements, also of an array inside', () => {
    expect(listElements('[ 1 ,"]", [2,[3]] , {"a":[]} ]')).toEqual(['1', '"]"', '[2,[3]]', '{"a":[]}']);
    expect(listElements('{"a":[1,2]}', 5)).toEqual(['1', '2']);
  });

  test('empty containers have nothing', () => {
    expect(listElements('[ ]')).toEqual([]);
    expect(listMembers('{ }')).toEqual([]);
  });

  test('whatever JSON.stringify writes is cut into parts that parse to the same', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.constantFrom('', ' ', '\n\t'),
        (value, space) => {
          const text = JSON.stringify(value, null, space);
          const parts = listMembers(text).map(([key, raw]) => [key, JSON.parse(raw ?? '') as unknown]);
          expect(parts).toEqual(Object.entries(JSON.parse(text) as object));
          expect(valueEnd(text, 0)).toBe(text.length);
        },
      ),
    );
  });

  test('deep nesting does not exhaust the stack', () => {
    const text = '['.repeat(200_000) + ']'.repeat(200_000);
    expect(valueEnd(text, 0)).toBe(text.length);
    expect(isDeeperThan(text)).toBe(true);
  });
});

describe('parseJson', () => {
  test.each([
    ['', 'unexpected end at line 1, column 1'],
    ['{"a":1', 'unexpected end at line 1, column 7'],
    ['{"a":1,}', 'unexpected character at line 1, column 8'],
    ['[1,]', 'unexpected character at line 1, column 4'],
    ['{"a"\n:\n 01}', 'unexpected character at line 3, column 3'],
    ['[1] x', 'unexpected character at line 1, column 5'],
    ['["a\nb"]', 'unexpected character at line 1, column 4'],
    ['["\\x"]', 'unexpected character at line 1, column 3'],
    ['{a:1}', 'unexpected character at line 1, column 2'],
    ['[1}', 'unexpected character at line 1, column 3'],
    ['nul', 'unexpected character at line 1, column 1'],
    ['"abc', 'unexpected end at line 1, column 5'],
    ['\ufeff1', 'unexpected character at line 1, column 1'],
  ])('%j: %s', (text, message) => {
    expect(parseJson(text)).toEqual({ ok: false, code: 'invalid_frame', message: `not JSON: ${message}` });
  });

  test('gives what JSON.parse gives', () => {
    expect(parseJson(' {"a":1,"a":[2]} ')).toEqual({ ok: true, value: { a: [2] } });
  });

  test('finds a fault exactly when JSON.parse does, and not too late', () => {
    const marks = Array.from('{}[]:,"\\ \n-+.0123eEtrue');
    const alphabet = fc.constantFrom(...marks, 'true', 'null', '"a"', '\\u00e9', '\u0001');
    const text = fc.oneof(fc.string({ unit: alphabet, maxLength: 12 }), fc.json());
    fc.assert(
      fc.property(text, (candidate) => {
        const fault = findJsonFault(candidate);
        expect(fault < 0).toBe(parses(candidate));
        // What stands before the fault is at worst unfinished.
        const before = candidate.slice(0, fault);
        if (fault >= 0) expect([-1, before.length]).toContain(findJsonFault(before));
      }),
      { numRuns: 5000 },
    );
  });
});

describe('singleLine', () => {
  test('breaks between tokens go, those in strings are escapes and stay', () => {
    expect(singleLine('{\r\n  "a": "x\\ny",\n\n  "b": [\r1]\n}')).toBe('{  "a": "x\\ny",  "b": [1]}');
  });

  test('the value stays the same', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value, null, 2);
        expect(singleLine(text)).not.toMatch(/[\r\n]/);
        expect(JSON.parse(singleLine(text))).toEqual(JSON.parse(text));
      }),
    );
  });
});

describe('jsonPayload', () => {
  test('trims around and keeps inside', () => {
    expect(jsonPayload('\n [1.0,  9007199254740993]\t')).toEqual({
      ok: true,
      value: { format: 'json', text: '[1.0,  9007199254740993]' },
    });
  });

  test('takes 64 levels, refuses 65', () => {
    const nested = (depth: number): string =>
      '[{"a":'.repeat(depth / 2) + (depth % 2 ? '[]' : '0') + '}]'.repeat(depth / 2);
    expect(jsonPayload(nested(64)).ok).toBe(true);
    expect(jsonPayload(nested(65))).toMatchObject({ ok: false, code: 'invalid_frame' });
    expect(jsonPayload(`[${'"[",'.repeat(100)}"["]`).ok).toBe(true);
  });
});

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
