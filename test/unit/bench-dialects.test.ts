import { describe, expect, it } from 'vitest';
import type { HerdSettings } from '../../bench/fleet/commands.js';
import { centrifugoDialect } from '../../bench/fleet/dialects/centrifugo.js';
import type { DialectName } from '../../bench/fleet/dialects/dialect.js';
import { natsDialect } from '../../bench/fleet/dialects/nats.js';
import { PeerInbox } from '../../bench/fleet/dialects/peer-inbox.js';
import { Link, type LinkOwner } from '../../bench/fleet/link.js';
import { nowUs, payloadText } from '../../bench/fleet/marker.js';
import { HttpAnswers } from '../../bench/publish/http-publisher.js';

/** A link that keeps what it is told to send. */
function fakeLink(index = 0) {
  const sent: string[] = [];
  const link = {
    index,
    answered: 0,
    send: (opcode: string, payload: Uint8Array) =>
      void sent.push(`${opcode}:${Buffer.from(payload).toString()}`),
  };
  return { link: link as unknown as Link, sent };
}

function inboxOf(dialect: DialectName, change: Partial<HerdSettings> = {}) {
  const faults: string[] = [];
  const settings: HerdSettings = {
    targets: [],
    path: '/',
    codec: 'json',
    offerProtocol: false,
    readyOn: 'subscribed',
    dialect,
    sockets: 2,
    first: 0,
    groups: [['item.1']],
    sources: [],
    napMs: 0,
    latency: true,
    check: true,
    firstNumber: 0,
    comeBack: false,
    ...change,
  };
  const inbox = new PeerInbox(settings, dialect, (reason) => faults.push(reason));
  const take = (link: Link, text: string): boolean => {
    // In the middle of a buffer, as frames come.
    const bytes = Buffer.from(`..${text}..`);
    return inbox.take(link, bytes, 2, bytes.length - 2);
  };
  return { inbox, faults, take };
}

const payload = (number: number, bytes = 80): string => payloadText({ dueUs: nowUs(), number }, bytes);

/** How each server sends one message, and what else it sends before. */
const servers = {
  'socket.io': {
    greeting: ['0{"sid":"a","pingInterval":25000}', '40{"sid":"b"}'],
    said: ['text:40'],
    ping: ['2', 'text:3'],
    refusal: '44{"message":"no"}',
    message: (text: string) => `42["m",${text}]`,
  },
  nats: {
    greeting: ['INFO {"server_id":"x"} \r\n', 'PONG\r\n'],
    said: [
      'binary:CONNECT {"verbose":false,"pedantic":false,"lang":"bench","version":"1"}\r\nSUB item.1 1\r\nPING\r\n',
    ],
    ping: ['PING\r\n', 'binary:PONG\r\n'],
    refusal: "-ERR 'Unknown Protocol Operation'\r\n",
    message: (text: string) => `MSG item.1 1 ${Buffer.byteLength(text)}\r\n${text}\r\n`,
  },
  centrifugo: {
    greeting: [
      '{"id":1,"connect":{"client":"c","ping":25,"pong":true}}\n{"id":2,"subscribe":{}}',
      '{"push":{"channel":"item.1","pub":{"data":' + payload(0) + '}}}',
    ],
    said: ['text:{"id":1,"connect":{}}\n{"id":2,"subscribe":{"channel":"item.1"}}'],
    ping: ['{}', 'text:{}'],
    refusal: '{"id":2,"error":{"code":103,"message":"permission denied"}}',
    message: (text: string) => `{"push":{"channel":"item.1","pub":{"data":${text}}}}`,
  },
} as const;

describe.each(['socket.io', 'nats', 'centrifugo'] as const)('the client of %s', (name) => {
  const { greeting, message, ping, refusal, said } = servers[name];

  it('comes in, and is ready when its subscription is confirmed', () => {
    const { faults, inbox, take } = inboxOf(name, { firstNumber: -1 });
    const { link, sent } = fakeLink();
    inbox.upgraded(link);
    const answered = greeting.map((text) => take(link, text));
    expect(sent).toEqual(said);
    expect(answered.filter(Boolean)).toHaveLength(1);
    expect(inbox.isAnswered(link)).toBe(true);
    expect(inbox.isAnswered(fakeLink(1).link)).toBe(false);
    expect(faults).toEqual([]);
  });

  it('answers a ping, and tells of a refusal', () => {
    const { faults, inbox, take } = inboxOf(name);
    const { link, sent } = fakeLink();
    expect(take(link, ping[0])).toBe(false);
    expect(sent).toEqual([ping[1]]);
    expect(take(link, refusal)).toBe(false);
    expect(faults).toEqual([expect.stringContaining(refusal.trim())]);
    expect(inbox.counts().messages).toBe(0);
  });

  it('counts, checks and times each message', () => {
    const { inbox, take } = inboxOf(name);
    const [first, second] = [fakeLink(0).link, fakeLink(1).link];
    for (const number of [0, 1, 2]) take(first, message(payload(number)));
    inbox.begin();
    // On the second, the first is missing, and one comes again.
    for (const number of [1, 2, 2]) take(second, message(payload(number, 300)));
    take(second, message('{"other":1}'));
    expect(inbox.counts()).toMatchObject({
      messages: 7,
      messagesSinceBegin: 4,
      lost: 1,
      doubled: 1,
      disorder: 0,
      foreign: 1,
    });
    expect(inbox.latencies.count).toBe(3);
  });
});

describe('NATS over frames', () => {
  const { greeting, message } = servers.nats;
  const whole = Buffer.from(
    [greeting[0], message(payload(0)), 'PING\r\n', message(payload(1, 2000)), message(payload(2))].join(''),
  );

  it.each([1, 7, 100, 1000])('reads a stream that is cut every %i bytes', (size) => {
    const { faults, inbox } = inboxOf('nats');
    const [{ link, sent }, other] = [fakeLink(0), fakeLink(1)];
    const shared = Buffer.alloc(size);
    for (let at = 0; at < whole.length; at += size) {
      const length = whole.copy(shared, 0, at, at + size);
      inbox.take(link, shared, 0, length);
      // Between the parts of one socket come those of others, in the same buffer.
      shared.fill(0x2e);
      if (at === 0) inbox.take(other.link, Buffer.from(message(payload(0))), 0, message(payload(0)).length);
    }
    expect(inbox.counts()).toMatchObject({ messages: 4, lost: 0, doubled: 0, foreign: 0 });
    expect(sent).toEqual(['binary:PONG\r\n']);
    expect(faults).toEqual([]);
  });

  it('finds several messages in one frame, also with a subject to answer to', () => {
    const found: string[] = [];
    const bytes = Buffer.from(
      `MSG a 1 2\r\nhi\r\nMSG a 1 _INBOX.b 0\r\n\r\nMSG a 1 11\r\nMSG a 1 2\r\n\r\nMSG a`,
    );
    const at = natsDialect('a').read(bytes, 0, bytes.length, {
      message: (all, from, to) => void found.push(all.toString('latin1', from, to)),
      reply: () => expect.unreachable(),
      ready: () => expect.unreachable(),
      fault: () => expect.unreachable(),
    });
    expect(found).toEqual(['hi', '', 'MSG a 1 2\r\n']);
    expect(bytes.toString('latin1', at)).toBe('MSG a');
  });

  it('forgets what a connection has left over when there is a new one', () => {
    const { inbox, take } = inboxOf('nats');
    const { link } = fakeLink();
    take(link, 'MSG item.1 1 80\r\n{"t"');
    inbox.upgraded(link);
    take(link, message(payload(0)));
    expect(inbox.counts()).toMatchObject({ messages: 1, foreign: 0 });
  });
});

it('finds several lines of Centrifugo in one frame', () => {
  const found: string[] = [];
  const push = (text: string) => `{"push":{"channel":"a \\"b","pub":{"data":${text}}}}`;
  const bytes = Buffer.from([push('1'), '{}', push('22')].join('\n'));
  let pings = 0;
  centrifugoDialect('a "b').read(bytes, 0, bytes.length, {
    message: (all, from, to) => void found.push(all.toString('latin1', from, to)),
    reply: () => pings++,
    ready: () => expect.unreachable(),
    fault: () => expect.unreachable(),
  });
  expect(found).toEqual(['1}}}', '22}}}']);
  expect(pings).toBe(1);
});

it('hands on a message that is split over frames', () => {
  const parts: string[] = [];
  const owner: LinkOwner = {
    buffer: Buffer.alloc(0),
    upgrade: () => '',
    upgraded: () => undefined,
    frame: (_, bytes, start, end) => void parts.push(bytes.toString('latin1', start, end)),
    read: () => undefined,
    ended: () => undefined,
  };
  const link = new Link(owner, 0);
  for (const [opcode, text] of [
    [2, 'begins'],
    [0, 'goes on'],
    [10, 'a pong'],
  ] as const) {
    link.onFrame(opcode, Buffer.from(text), 0, text.length);
  }
  expect(parts).toEqual(['begins', 'goes on']);
});

it('refuses a peer with several topics', () => {
  expect(() => inboxOf('nats', { groups: [['a'], ['b']] })).toThrow('one topic');
});

it.each([1, 10, 1000])('reads answers of HTTP that are cut every %i bytes', (size) => {
  const found: number[] = [];
  const answers = new HttpAnswers((status) => found.push(status));
  const text =
    'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n\r\n\r\nxHTTP/1.1 202 Accepted\r\nContent-Length:0\r\n\r\n' +
    'HTTP/1.1 204 No Content\r\nServer: x\r\n\r\nHTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno';
  for (let at = 0; at < text.length; at += size) answers.push(Buffer.from(text.slice(at, at + size)));
  expect(found).toEqual([200, 202, 204, 500]);
});
