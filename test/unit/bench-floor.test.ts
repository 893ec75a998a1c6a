import { describe, expect, it } from 'vitest';
import { FrameCounter } from '../../bench/floor/frame-counter.js';
import { payloadText, readMarker, type Marker } from '../../bench/floor/payload.js';
import { faultsOf, summarise } from '../../bench/floor/report.js';
import type { RunResult } from '../../bench/floor/run.js';

const head = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n';

function frame(text: string, opcode = 1): Buffer {
  const payload = Buffer.from(text);
  const short = payload.length < 126;
  const size = short ? [payload.length] : [126, payload.length >> 8, payload.length & 0xff];
  return Buffer.concat([Buffer.from([0x80 | opcode, ...size]), payload]);
}

function message(marker: Marker, bytes = 80): string {
  return `{"type":"msg","topic":"item.floor","offset":7,"data":${payloadText(marker, bytes)}}`;
}

describe('counting frames', () => {
  const stream = Buffer.concat([
    Buffer.from(head),
    frame('{"type":"welcome","session":"n.1"}'),
    frame('{"type":"subscribed","topics":[{"topic":"item.floor"}]}'),
    frame(message({ dueUs: 5, number: 0 })),
    frame('', 9),
    frame(message({ dueUs: 6, number: 1 }, 300)),
    frame('{"type":"msg"}', 2),
  ]);

  it.each([1, 2, 7, 64, stream.length])('reads chunks of %i bytes', (size) => {
    const markers: Marker[] = [];
    const counter = new FrameCounter('subscribed', (bytes, start, end) =>
      markers.push(readMarker(bytes, start, end)),
    );
    // One buffer for all reads, as the sockets have it.
    const reused = Buffer.alloc(size);
    for (let at = 0; at < stream.length; at += size) {
      const length = stream.copy(reused, 0, at, at + size);
      counter.push(reused.subarray(0, length));
    }
    expect(counter).toMatchObject({ status: 101, isReady: true, messages: 2 });
    expect(markers).toEqual([
      { dueUs: 5, number: 0 },
      { dueUs: 6, number: 1 },
    ]);
  });

  it('takes the sign of readiness that it was told', () => {
    const bare = new FrameCounter('upgrade');
    const node = new FrameCounter('subscribed');
    for (const counter of [bare, node]) counter.push(Buffer.from(head));
    expect(bare.isReady).toBe(true);
    expect(node.isReady).toBe(false);
  });

  it('tells of a refused upgrade', () => {
    const counter = new FrameCounter('upgrade');
    counter.push(Buffer.from('HTTP/1.1 503 Service Unavailable\r\n\r\n'));
    expect(counter).toMatchObject({ status: 503, isReady: false });
  });
});

it('makes payloads of the wanted size', () => {
  for (const number of [0, 99, 123_456]) {
    expect(payloadText({ dueUs: 1_234_567_890, number }, 80)).toHaveLength(80);
  }
});

describe('the report', () => {
  const run: RunResult = {
    subject: 'bare',
    deliveries: 100,
    expected: 100,
    disorder: 0,
    refused: [],
    seconds: 1,
    serverCpuSec: 0.5,
    clientCpuShareMax: 0.2,
    clientCpuSec: 0.4,
    cpuUsPerDelivery: 2,
    messagesPerRead: 1,
    p50Ms: 1,
    p99Ms: 2,
    maxMs: 3,
  };

  it('finds fault with what was lost, doubled, disordered or refused, and with a busy client', () => {
    expect(faultsOf(run)).toEqual([]);
    for (const fault of [
      { deliveries: 99 },
      { deliveries: 101 },
      { disorder: 1 },
      { refused: ['no'] },
      { clientCpuShareMax: 0.95 },
    ]) {
      expect(faultsOf({ ...run, ...fault })).toHaveLength(1);
    }
  });

  it('compares within a round, so that a slow round does not count against one server', () => {
    const node = { ...run, subject: 'node-live' as const, cpuUsPerDelivery: 3 };
    const slow = [
      { ...run, cpuUsPerDelivery: 10 },
      { ...node, cpuUsPerDelivery: 15 },
    ];
    expect(summarise([[run, node], slow])[1]).toMatchObject({ ratio: 1.5, ratioMin: 1.5, ratioMax: 1.5 });
  });
});
