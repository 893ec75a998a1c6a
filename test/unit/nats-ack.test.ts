import type { MsgHdrs } from 'nats';
import { describe, expect, it } from 'vitest';
import { readAck, StillStoring } from '../../broker/nats-ack.js';

function read(text: string) {
  const data = new TextEncoder().encode(text);
  return readAck({ data, string: () => text });
}

describe('an acknowledgement', () => {
  it.each([
    ['{"stream":"tc_item", "seq":12}', 12, false],
    ['{"stream":"tc_item","seq":9007199254740991}', 9007199254740991, false],
    ['{"stream":"tc_item", "seq":12,"duplicate": true}', 12, true],
    ['{"stream":"tc_item", "domain":"hub", "seq":3}', 3, false],
    ['{"stream":"a\\"b","seq":4}', 4, false],
    ['{"seq":5,"stream":"tc_item"}', 5, false],
    ['{"stream":"tc_item", "seq":6 }', 6, false],
  ])('says where the message is: %s', (text, seq, duplicate) => {
    expect(read(text)).toEqual({ seq, duplicate });
  });

  it.each([
    [
      '{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"},"stream":"tc_item","seq":0}',
      /maximum/,
    ],
    ['{"stream":"tc_item","seq":7,"error":{"code":400}}', /refused/],
    ['{"stream":"tc_item"}', /without a sequence/],
    ['{"stream":"tc_item","seq":12', /something else than JSON/],
    ['{"stream":"tc_item","seq":12}}', /something else than JSON/],
    ['{"stream":"tc_item', /something else than JSON/],
    ['', /something else than JSON/],
  ])('is an error when it says so or cannot be read: %s', (text, message) => {
    expect(read(text)).toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(message) as string,
    });
  });

  it('says that the same id is being stored', () => {
    expect(read('{"error":{"code":400,"err_code":10158}}')).toBeInstanceOf(StillStoring);
  });

  it('says that nobody listens', () => {
    const headers = { code: 503 } as MsgHdrs;
    expect(readAck({ data: new Uint8Array(), headers, string: () => '' })).toMatchObject({
      message: 'the stream is out of reach',
    });
  });
});
