import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { jsonCodec, msgpackCodec, success, transcode, type Codec, type Encoded } from '../../protocol/mod.js';
import { arbitraryClientFrame, arbitraryPayload, arbitraryServerFrame } from '../support/arbitrary-frames.js';
import { utf8 } from '../support/bytes.js';

const numRuns = 1000;

describe.each<Codec>([jsonCodec, msgpackCodec])('$name', (codec) => {
  test('every client frame comes back as it went in, its payload untouched', () => {
    fc.assert(
      fc.property(arbitraryClientFrame(codec.name), (frame) => {
        expect(codec.decodeClient(wire(codec.encodeClient(frame)))).toStrictEqual(success(frame));
      }),
      { numRuns },
    );
  });

  test('every server frame comes back as it went in, its payload untouched', () => {
    fc.assert(
      fc.property(arbitraryServerFrame(codec.name), (frame) => {
        expect(codec.decodeServer(wire(codec.encodeServer(frame)))).toStrictEqual(success(frame));
      }),
      { numRuns },
    );
  });

  test('what a decoded frame keeps does not change when the buffer is used again', () => {
    fc.assert(
      fc.property(arbitraryClientFrame(codec.name), (frame) => {
        const bytes = Buffer.from(wire(codec.encodeClient(frame)));
        const decoded = codec.decodeClient(bytes);
        bytes.fill(0xc1);
        expect(decoded).toStrictEqual(success(frame));
      }),
      { numRuns: 200 },
    );
  });

  test('a payload crosses to the other codec and back by value', () => {
    const other = codec.name === 'json' ? 'msgpack' : 'json';
    fc.assert(
      fc.property(arbitraryPayload(codec.name), (payload) => {
        const there = transcode(payload, other);
        expect(there.format).toBe(other);
        const json = transcode(there, 'json');
        const again = transcode(transcode(json, 'msgpack'), 'json');
        expect(again).toStrictEqual(json);
      }),
      { numRuns },
    );
  });
});

/** Frames as a socket hands them over. */
function wire(encoded: Encoded): Uint8Array {
  return typeof encoded === 'string' ? utf8(encoded) : encoded;
}
